"""The Deployment nginx of the guide to resource propagation, and the tables that show it."""

from tests.seeds.users import plain

GET = ("get", "deployment")
PODS = ("get", "pod", "-l", "app=nginx")

IN_MEMBER2 = plain("""\
NAME CLUSTER READY UP-TO-DATE AVAILABLE AGE ADOPTION
nginx member2 1/1 1 1 5s Y
""")

POD_IN_MEMBER2 = plain("""\
NAME CLUSTER READY STATUS RESTARTS AGE
nginx-6799fc88d8-8t8cc member2 1/1 Running 0 17s
""")
BINDING = "nginx-deployment"
DEDICATED = "dedicated=special-user:NoSchedule"
