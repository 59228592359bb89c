"""Server process of ``bench kube``: ``python -m engine.bench.kube_server DIRECTORY [bare|tutorial]``.

By default it runs the control plane with members of ample capacity, with ``tutorial`` with the tutorial's members.
With ``bare`` it only serves a route that returns the request body, on the same HTTP server, TLS and event loop.
"""

import sys
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine.bench import inputs
from engine.process import control_plane
from engine.simulation import defaults

_BARE: Final = "bare"
_TUTORIAL: Final = "tutorial"


async def _answer(request: Request) -> Response:
    return Response(await request.body(), 201, media_type="application/json")


def main() -> None:
    """Serve until a signal stops the process."""
    directory = Path(sys.argv[1])
    if sys.argv[2:] == [_BARE]:
        application = Starlette(routes=[Route("/", _answer, methods=["POST"])])
        control_plane.run(control_plane.serve_alone(application, directory))
    else:
        members = defaults.three_members() if sys.argv[2:] == [_TUTORIAL] else inputs.members()
        control_plane.run(control_plane.serve(control_plane.Options(directory=directory, members=members)))


if __name__ == "__main__":
    main()
