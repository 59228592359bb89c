"""Service accounts of a simulated member."""

from tests.api.kube.client import MAPS, MEMBER, member
from tests.builders.manifests import manifest

ACCOUNTS = f"{MEMBER}/api/v1/namespaces/default/serviceaccounts"
BINDINGS = f"{MEMBER}/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"


async def test_account_of_a_member_is_limited_to_the_members_roles() -> None:
    async with member() as client:
        made = await client.post(ACCOUNTS, json=manifest("v1", "ServiceAccount", "robot"))
        assert made.status_code == 201, made.text
        token = (await client.post(f"{ACCOUNTS}/robot/token", json={"spec": {}})).json()["status"]["token"]
        robot = {"authorization": f"Bearer {token}"}
        assert (await client.get(f"{MEMBER}{MAPS}", headers=robot)).status_code == 403
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
        subjects = [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}]
        binding = manifest(
            "rbac.authorization.k8s.io/v1", "RoleBinding", "robots", roleRef=role, subjects=subjects
        )
        assert (await client.post(BINDINGS, json=binding)).status_code == 201
        for path, code in ((f"{MEMBER}{MAPS}", 200), (f"{MEMBER}/api/v1/nodes", 403), (MAPS, 403)):
            assert (await client.get(path, headers=robot)).status_code == code, path
