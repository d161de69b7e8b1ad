"""One cluster of two processes for all tests of Dask."""

import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="session")
def cluster():
    with LocalCluster(
        n_workers=2,
        processes=True,
        threads_per_worker=1,
        dashboard_address=":0",
        memory_limit="1GiB",
    ) as made:
        yield made


@pytest.fixture(scope="session")
def client(cluster):
    with Client(cluster) as made:
        yield made
