"""Real client programs, each at a job of its own against the server: bash tests/run.sh --only matrix."""

import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "real_model"))

import matrix  # noqa: E402
import served  # noqa: E402
from clients import CLIENTS, NOT_RUN, WORKED  # noqa: E402

pytestmark = pytest.mark.matrix


@pytest.fixture(scope="module")
def servers():
    with served.servers() as them:
        yield them


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_the_client_does_its_job(client, servers):
    outcome = matrix.run(client, servers)
    if outcome["result"] == NOT_RUN:
        pytest.skip(outcome["why"])
    assert outcome["result"] == WORKED, outcome["why"]
