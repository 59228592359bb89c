"""Who may do what: the decider of rights, by roles and bindings (``rbac.authorization.k8s.io/v1``).

Rights only ever add up; nothing takes one away. A binding in a namespace counts there alone, one of the cluster
everywhere. Members of ``system:masters`` may do everything, whatever roles there are. Pure: roles and bindings come
as values (``rights_reading``), and whoever asks is known by name and groups.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from engine.objects.selectors import LabelSelector

MASTERS: Final = "system:masters"
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
_ALL: Final = "*"


class User(Struct, frozen=True, kw_only=True):
    """Who asks; ``member`` names the one cluster whose API is all that a member's own token opens."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}
    member: str = ""

    @property
    def is_master(self) -> bool:
        """Whether everything is allowed."""
        return MASTERS in self.groups


class Act(Struct, frozen=True, kw_only=True):
    """What somebody wants to do: a verb on a kind (or a part of it), or on a ``path`` that is no resource."""

    verb: str
    group: str = ""
    resource: str = ""
    part: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def whole(self) -> str:
        """The kind with its part: ``deployments/scale``."""
        return f"{self.resource}/{self.part}" if self.part else self.resource


class Rule(Struct, frozen=True, kw_only=True):
    """Verbs that are allowed, on resources of groups (of these names, where there are some), or on paths."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def allows(self, act: Act) -> bool:
        """Whether the act is one of those."""
        if not _names(self.verbs, act.verb):
            return False
        if act.path:
            return any(_is_below(path, act.path) for path in self.paths)
        return (
            _names(self.groups, act.group)
            and self._has_resource(act)
            and (not self.names or act.name in self.names)
        )

    def _has_resource(self, act: Act) -> bool:
        wanted = (_ALL, act.whole, f"*/{act.part}") if act.part else (_ALL, act.whole)
        return any(each in wanted for each in self.resources)

    def acts(self) -> Iterator["Rule"]:
        """The rule in its smallest parts: one verb on one resource, name or path each."""
        for verb in self.verbs:
            for path in self.paths:
                yield Rule(verbs=(verb,), paths=(path,))
            for group in self.groups:
                for resource in self.resources:
                    for name in self.names or ("",):
                        names = (name,) if name else ()
                        yield Rule(verbs=(verb,), groups=(group,), resources=(resource,), names=names)


class Role(Struct, frozen=True, kw_only=True):
    """Rules under a name; without a namespace it is one of the cluster.

    ``gathers`` are label selectors of cluster roles whose rules count as its own.
    """

    name: str
    namespace: str = ""
    rules: tuple[Rule, ...] = ()
    labels: Mapping[str, str] = {}
    gathers: tuple[LabelSelector, ...] = ()


class Subject(Struct, frozen=True, kw_only=True):
    """Who is bound: a User, a Group, or a ServiceAccount of a namespace."""

    kind: str
    name: str
    namespace: str = ""

    @property
    def words(self) -> str:
        """As reasons name it."""
        return (
            f'{self.kind} "{self.name}/{self.namespace}"' if self.namespace else f'{self.kind} "{self.name}"'
        )

    def is_user(self, user: User) -> bool:
        """Whether the user is meant."""
        match self.kind:
            case "User":
                return user.name == self.name
            case "Group":
                return self.name in user.groups
            case "ServiceAccount":
                return user.name == service_account(self.namespace, self.name)
            case _:
                return False


class Binding(Struct, frozen=True, kw_only=True):
    """Subjects who have a role's rights, in one namespace, or everywhere."""

    name: str
    namespace: str = ""
    role: str
    of_cluster: bool
    subjects: tuple[Subject, ...]

    def subject(self, user: User) -> Subject | None:
        """The first subject that the user is."""
        return next((each for each in self.subjects if each.is_user(user)), None)


class Grant(Struct, frozen=True, kw_only=True):
    """A rule that a user has, by which binding, as whom."""

    rule: Rule
    binding: Binding
    subject: Subject

    @property
    def reason(self) -> str:
        """Why it is allowed, in the reference's words."""
        kind = "RoleBinding" if self.binding.namespace else "ClusterRoleBinding"
        role = "ClusterRole" if self.binding.of_cluster else "Role"
        place = f"/{self.binding.namespace}" if self.binding.namespace else ""
        return (
            f'RBAC: allowed by {kind} "{self.binding.name}{place}" of {role} "{self.binding.role}"'
            f" to {self.subject.words}"
        )


class Rights:
    """All roles and bindings; never changed."""

    __slots__ = ("_bound", "_roles")

    def __init__(self, roles: Iterable[Role], bindings: Iterable[Binding]) -> None:
        held = {(each.namespace, each.name): each for each in roles}
        self._roles = {place: _gathered(role, list(held.values())) for place, role in held.items()}
        self._bound: dict[str, list[Binding]] = {}
        for each in sorted(bindings, key=lambda binding: (binding.namespace, binding.name)):
            self._bound.setdefault(each.namespace, []).append(each)

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """The rules that a user has in a namespace; an empty one stands for the cluster."""
        for place in dict.fromkeys(("", namespace)):
            for binding in self._bound.get(place, ()):
                subject = binding.subject(user)
                role = self._roles.get(("" if binding.of_cluster else place, binding.role))
                if subject is not None and role is not None:
                    for rule in role:
                        yield Grant(rule=rule, binding=binding, subject=subject)

    def allows(self, user: User, act: Act) -> Grant | None:
        """The first grant that allows an act; None where there is none, which says nothing of masters."""
        namespace = "" if act.path else act.namespace
        return next((each for each in self.grants(user, namespace) if each.rule.allows(act)), None)

    def may(self, user: User, act: Act) -> bool:
        """Whether the user may do it."""
        return user.is_master or self.allows(user, act) is not None

    def rules(self, role: str, namespace: str) -> tuple[Rule, ...] | None:
        """The rules of a role; an empty namespace means one of the cluster. None where there is no such role."""
        return self._roles.get((namespace, role))

    def beyond(self, user: User, wanted: Iterable[Rule], namespace: str) -> list[Rule]:
        """What a user can't hand on, since they don't have it themselves."""
        if user.is_master:
            return []
        owned = [each.rule for each in self.grants(user, namespace)]
        return [
            part for rule in wanted for part in rule.acts() if not any(_covers(own, part) for own in owned)
        ]


def service_account(namespace: str, name: str) -> str:
    """The name by which a service account is known as a user."""
    return f"system:serviceaccount:{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """The groups of a service account."""
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)


def _gathered(role: Role, roles: Sequence[Role]) -> tuple[Rule, ...]:
    """The rules of a role, and of those that it gathers, and that these gather."""
    found: dict[Rule, None] = {}
    seen: set[str] = set()
    waiting = [role]
    while waiting:
        each = waiting.pop()
        found.update(dict.fromkeys(each.rules))
        for selector in each.gathers:
            for other in roles:
                if selector.matches(other.labels) and not other.namespace and other.name not in seen:
                    seen.add(other.name)
                    waiting.append(other)
    return tuple(found)


def _covers(own: Rule, part: Rule) -> bool:
    """Whether a rule allows all that the smallest part of another does."""
    if not _names(own.verbs, part.verbs[0]):
        return False
    if part.paths:
        return any(_is_below(path, part.paths[0]) for path in own.paths)
    resource = part.resources[0]
    wanted = {_ALL, resource}
    if "/" in resource:
        wanted.add("*/" + resource.partition("/")[2])
    return (
        _names(own.groups, part.groups[0])
        and any(each in wanted for each in own.resources)
        and (not own.names or (bool(part.names) and part.names[0] in own.names))
    )


def _names(listed: tuple[str, ...], wanted: str) -> bool:
    return _ALL in listed or wanted in listed


def _is_below(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith(_ALL) and path.startswith(pattern.removesuffix(_ALL)))
