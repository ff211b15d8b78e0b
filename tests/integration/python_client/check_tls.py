"""Checks the installed client against a daemon that serves over TLS and asks clients for certificates: check_tls.py FOLDER.

FOLDER has ca.pem, client.pem and client.key, and stranger.pem, an authority that nobody trusts. The daemon's certificate has the name
tandemd.test alone. The address and the token are in the environment.
"""

import asyncio
import os
import pathlib
import sys

import tandem
import tandem.aio

FOLDER = pathlib.Path(sys.argv[1])
SPEC = {
    "dataset": {"synthetic": {"shape": [4], "classes": 2, "train_samples": 64}},
    "model": {"input": {"shape": [4]}, "layers": [{"dense": {"units": 2}}]},
    "training": {"loss": "softmax_cross_entropy", "optimizer": {"sgd": {"learning_rate": 0.1}}, "global_batch_size": 16, "epochs": 2},
}
RIGHT = {
    "tls_ca": str(FOLDER / "ca.pem"),
    "tls_cert": str(FOLDER / "client.pem"),
    "tls_key": str(FOLDER / "client.key"),
    "tls_server_name": "tandemd.test",
}
VARIABLES = {"tls_ca": "TANDEM_TLS_CA", "tls_cert": "TANDEM_TLS_CERT", "tls_key": "TANDEM_TLS_KEY", "tls_server_name": "TANDEM_TLS_SERVER_NAME"}


def check_training() -> None:
    with tandem.connect(**RIGHT) as client:
        job = client.submit(SPEC)
        assert [epoch.number for epoch in job.follow()] == [1, 2]
        assert sorted(job.model()) == ["dense_1.bias", "dense_1.weight"], sorted(job.model())


async def check_asyncio() -> None:
    async with tandem.aio.connect(**RIGHT) as client:
        job = await client.submit(SPEC)
        assert [epoch.number async for epoch in job.follow()] == [1, 2]


def check_environment() -> None:
    os.environ.update({VARIABLES[option]: value for option, value in RIGHT.items()})
    with tandem.connect() as client:
        assert client.daemon().version
    for variable in VARIABLES.values():
        del os.environ[variable]


def check_refusals() -> None:
    """Neither side speaks with a stranger, and the client names a mend."""
    wrong = {
        "no TLS": {},
        "the system's authorities": {"tls": True, "tls_server_name": "tandemd.test"},
        "another authority": {**RIGHT, "tls_ca": str(FOLDER / "stranger.pem")},
        "another name": {**RIGHT, "tls_server_name": "other.test"},
        "the address for a name": {name: value for name, value in RIGHT.items() if name != "tls_server_name"},
        "no certificate of the client's own": {"tls_ca": RIGHT["tls_ca"], "tls_server_name": "tandemd.test"},
    }
    for what, options in wrong.items():
        try:
            tandem.connect(reconnect_timeout=0.5, timeout=10, **options).daemon()
        except tandem.Unavailable as error:
            assert error.mend, f"{what}: {error}"
        else:
            raise SystemExit(f"the client speaks with the daemon: {what}")
    try:
        tandem.connect(tls_ca=str(FOLDER / "missing.pem"))
    except tandem.TandemError as error:
        assert "missing.pem" in str(error), error
    else:
        raise SystemExit("the client takes a file that does not exist")


check_training()
asyncio.run(check_asyncio())
check_environment()
check_refusals()
print("all is right over TLS")
