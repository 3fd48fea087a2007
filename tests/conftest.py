import pytest


@pytest.fixture(scope="session", autouse=True)
def cache_of_references(tmp_path_factory):
    """Tests neither read nor fill the user's cache."""
    patch = pytest.MonkeyPatch()
    patch.setenv("ROCE_GYM_CACHE", str(tmp_path_factory.mktemp("references")))
    yield
    patch.undo()
