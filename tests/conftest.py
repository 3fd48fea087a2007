import pytest


@pytest.fixture(scope="session", autouse=True)
def cache_of_references(tmp_path_factory):
    """Tests neither read nor fill the user's cache."""
    patch = pytest.MonkeyPatch()
    patch.setenv("ROCE_GYM_CACHE", str(tmp_path_factory.mktemp("references")))
    yield
    patch.undo()


@pytest.fixture
def command(capsys):
    """Runs a command in this process that succeeds; what it printed."""

    def call(*arguments):
        from roce_gym.cli import main

        assert main([str(argument) for argument in arguments]) == 0
        return capsys.readouterr().out

    return call
