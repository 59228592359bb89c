"""RBAC authorization: decide by roles and bindings (``rbac.authorization.k8s.io/v1``) which user may do what.

Rights are additive; no rule denies. A RoleBinding applies in its namespace, a ClusterRoleBinding everywhere. Members of
``system:masters`` may do everything. ``parsing`` reads roles and bindings; users are matched by name and groups.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypedDict

from msgspec import Struct, structs

from engine.kubeapi.values.selectors import LabelSelector

MASTERS: Final = "system:masters"
ANONYMOUS: Final = "system:anonymous"
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
_ALL: Final = "*"


class UserInfo(TypedDict, total=False):
    """A user as reviews and CertificateSigningRequests represent it."""

    username: str
    groups: list[str]
    uid: str
    extra: dict[str, list[str]]


class User(Struct, frozen=True, kw_only=True):
    """An authenticated user.

    If ``member`` is set, the user's token is valid only for the API of that member cluster. The user may do everything
    there; but with ``is_account`` the user is a service account of the member, limited by the member's roles.
    ``is_master`` follows from the groups: members of ``system:masters`` may do everything.
    """

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}
    member: str = ""
    is_account: bool = False
    is_master: bool = False

    def __post_init__(self) -> None:
        structs.force_setattr(self, "is_master", MASTERS in self.groups)

    @property
    def may_all(self) -> bool:
        """Whether the user may do everything in the member for which its token is valid."""
        return bool(self.member) and not self.is_account

    @property
    def info(self) -> UserInfo:
        """The user without empty fields."""
        fields: UserInfo = {"username": self.name, "groups": list(self.groups)}
        if self.uid:
            fields["uid"] = self.uid
        if self.extra:
            fields["extra"] = {name: list(texts) for name, texts in self.extra.items()}
        return fields


class Act(Struct, frozen=True, kw_only=True):
    """A requested action: a verb on a resource (or a subresource, ``part``), or on a non-resource ``path``."""

    verb: str
    group: str = ""
    resource: str = ""
    part: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def whole(self) -> str:
        """The resource with its subresource: ``deployments/scale``."""
        return f"{self.resource}/{self.part}" if self.part else self.resource


class Rule(Struct, frozen=True, kw_only=True):
    """Allowed verbs on resources of API groups (restricted to ``names`` if set), or on non-resource paths."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def allows(self, act: Act) -> bool:
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
        accepted = (_ALL, act.whole, f"*/{act.part}") if act.part else (_ALL, act.whole)
        return any(resource in accepted for resource in self.resources)

    def single_rules(self) -> Iterator["Rule"]:
        """Yield the rule split into rules with one verb, and with one path or one resource (and name) each."""
        for verb in self.verbs:
            for path in self.paths:
                yield Rule(verbs=(verb,), paths=(path,))
            for group in self.groups:
                for resource in self.resources:
                    for name in self.names or ("",):
                        names = (name,) if name else ()
                        yield Rule(verbs=(verb,), groups=(group,), resources=(resource,), names=names)


class Role(Struct, frozen=True, kw_only=True):
    """A Role, or a ClusterRole if it has no namespace.

    ``aggregation_selectors`` are the label selectors of an aggregated ClusterRole. Such a role also has the rules of
    all ClusterRoles that a selector matches.
    """

    name: str
    namespace: str = ""
    rules: tuple[Rule, ...] = ()
    labels: Mapping[str, str] = {}
    aggregation_selectors: tuple[LabelSelector, ...] = ()


class Subject(Struct, frozen=True, kw_only=True):
    """A subject of a binding: a User, a Group, or a ServiceAccount of a namespace."""

    kind: str
    name: str
    namespace: str = ""

    @property
    def text(self) -> str:
        """The subject as ``Grant.reason`` names it."""
        return (
            f'{self.kind} "{self.name}/{self.namespace}"' if self.namespace else f'{self.kind} "{self.name}"'
        )

    def is_user(self, user: User) -> bool:
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
    """A RoleBinding, or a ClusterRoleBinding if it has no namespace; ``of_cluster``: it refers to a ClusterRole."""

    name: str
    namespace: str = ""
    role: str
    of_cluster: bool
    subjects: tuple[Subject, ...]

    def subject(self, user: User) -> Subject | None:
        """Return the first subject that matches the user, or None."""
        return next((subject for subject in self.subjects if subject.is_user(user)), None)


class Grant(Struct, frozen=True, kw_only=True):
    """A rule that a user has, with the binding and the subject that grant it."""

    rule: Rule
    binding: Binding
    subject: Subject

    @property
    def reason(self) -> str:
        """The reason in the wording of the Kubernetes RBAC authorizer."""
        kind = "RoleBinding" if self.binding.namespace else "ClusterRoleBinding"
        role = "ClusterRole" if self.binding.of_cluster else "Role"
        suffix = f"/{self.binding.namespace}" if self.binding.namespace else ""
        return (
            f'RBAC: allowed by {kind} "{self.binding.name}{suffix}" of {role} "{self.binding.role}"'
            f" to {self.subject.text}"
        )


class Rights:
    """All roles and bindings, indexed by namespace; immutable."""

    __slots__ = ("_bound", "_roles", "others")

    def __init__(self, roles: Iterable[Role], bindings: Iterable[Binding]) -> None:
        by_name = {(role.namespace, role.name): role for role in roles}
        self._roles = {key: _aggregated_rules(role, list(by_name.values())) for key, role in by_name.items()}
        self._bound: dict[str, list[Binding]] = {}
        for binding in sorted(bindings, key=lambda item: (item.namespace, item.name)):
            self._bound.setdefault(binding.namespace, []).append(binding)
        self.others: tuple[Rights, ...] = ()

    def with_grants_of(self, other: "Rights") -> "Rights":
        """Return these rights with the grants of ``other`` added; ``rules`` does not return the roles of ``other``."""
        both = copy.copy(self)
        both.others = (*self.others, other)
        return both

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """Yield the grants of a user that hold in a namespace; an empty namespace means cluster scope."""
        for scope in dict.fromkeys(("", namespace)):
            for binding in self._bound.get(scope, ()):
                subject = binding.subject(user)
                role = self._roles.get(("" if binding.of_cluster else scope, binding.role))
                if subject is not None and role is not None:
                    for rule in role:
                        yield Grant(rule=rule, binding=binding, subject=subject)
        for other in self.others:
            yield from other.grants(user, namespace)

    def allows(self, user: User, act: Act) -> Grant | None:
        """Return the first grant that allows the act, or None. Does not consider ``system:masters``."""
        # Paths have no namespace, so only ClusterRoleBindings grant them.
        return next((grant for grant in self.grants(user, act.namespace) if grant.rule.allows(act)), None)

    def may(self, user: User, act: Act) -> bool:
        """Whether the user may perform the act, by a grant or as a member of ``system:masters``."""
        return user.is_master or self.allows(user, act) is not None

    def rules(self, role: str, namespace: str) -> tuple[Rule, ...] | None:
        """Return the rules of a Role, or of a ClusterRole if the namespace is empty; None if it does not exist."""
        return self._roles.get((namespace, role))

    def missing_rules(self, user: User, rules: Iterable[Rule], namespace: str) -> list[Rule]:
        """Return the parts of ``rules`` that the user does not have and so must not grant (escalation check)."""
        if user.is_master:
            return []
        owned = [granted.rule for granted in self.grants(user, namespace)]
        return [
            part
            for rule in rules
            for part in rule.single_rules()
            if not any(_covers(own, part) for own in owned)
        ]


def service_account(namespace: str, name: str) -> str:
    """Return the user name of a service account."""
    return f"system:serviceaccount:{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, ...]:
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)


def _aggregated_rules(role: Role, roles: Sequence[Role]) -> tuple[Rule, ...]:
    """Return the rules of a role and, transitively, of the ClusterRoles that it aggregates."""
    result: dict[Rule, None] = {}
    seen: set[str] = set()
    waiting = [role]
    while waiting:
        aggregating = waiting.pop()
        result.update(dict.fromkeys(aggregating.rules))
        for selector in aggregating.aggregation_selectors:
            for other in roles:
                if selector.matches(other.labels) and not other.namespace and other.name not in seen:
                    seen.add(other.name)
                    waiting.append(other)
    return tuple(result)


def _covers(own: Rule, part: Rule) -> bool:
    """Whether ``own`` allows everything that ``part`` allows; ``part`` is an item of ``Rule.single_rules``."""
    if not _names(own.verbs, part.verbs[0]):
        return False
    if part.paths:
        return any(_is_below(path, part.paths[0]) for path in own.paths)
    resource = part.resources[0]
    accepted = {_ALL, resource}
    if "/" in resource:
        accepted.add("*/" + resource.partition("/")[2])
    return (
        _names(own.groups, part.groups[0])
        and any(listed in accepted for listed in own.resources)
        and (not own.names or (bool(part.names) and part.names[0] in own.names))
    )


def _names(listed: tuple[str, ...], name: str) -> bool:
    return _ALL in listed or name in listed


def _is_below(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith(_ALL) and path.startswith(pattern.removesuffix(_ALL)))
