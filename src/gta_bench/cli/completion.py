"""`gta completion`: what a shell needs to complete commands and options."""

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

SHELLS = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command()
@click.argument("shell", type=click.Choice([*SHELLS]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL.

    \b
    bash: gta completion bash > ~/.local/share/bash-completion/completions/gta
    zsh:  gta completion zsh > _gta     (in a folder of $fpath)
    fish: gta completion fish > ~/.config/fish/completions/gta.fish
    """
    made = SHELLS[shell](context.find_root().command, {}, "gta", "_GTA_COMPLETE")
    # Not `source()`, which starts a bash to ask for its version, whatever shell is here.
    click.echo(made.source_template % made.source_vars())
