"""The command comtl, run in a folder."""

import contextlib

from click.testing import CliRunner, Result

from comtl.cli.commands import comtl


def run(folder, *arguments, code=0, stdin=None) -> Result:
    """Result of a command that is to end with an exit status."""
    with contextlib.chdir(folder):
        result = CliRunner().invoke(comtl, list(map(str, arguments)), input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result
