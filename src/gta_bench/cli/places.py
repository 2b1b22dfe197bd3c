"""What a command line may name as a place: a folder, or an address of a store."""

import click

from gta_bench.runs.store import RemotePath, StorePath, store_path


class Place(click.ParamType[StorePath]):
    """A folder or file of this machine, or an address such as s3://bucket/x."""

    name = "place"

    def convert(
        self, value: str | StorePath, param: click.Parameter | None, ctx: click.Context | None
    ) -> StorePath:
        """Read the text."""
        return store_path(value) if isinstance(value, str) else value


class Run(Place):
    """A folder that is there; an address is looked at when it is read."""

    name = "run"

    def convert(
        self, value: str | StorePath, param: click.Parameter | None, ctx: click.Context | None
    ) -> StorePath:
        """Read the text, and refuse a folder that is not there."""
        place = super().convert(value, param, ctx)
        if isinstance(place, RemotePath):
            return place
        click.Path(exists=True, file_okay=False).convert(str(place), param, ctx)
        return place


PLACE, RUN = Place(), Run()
