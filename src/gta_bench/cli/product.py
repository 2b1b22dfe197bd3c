"""The options of `gta run` that name a product behind HTTP as the system."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import click

from gta_bench.cli.grouping import add_options, options_of
from gta_bench.errors import EnvironmentProblem, UsageError
from gta_bench.harnesses.product import Product
from gta_bench.settings import read_key

Command = Callable[..., None]

option = options_of("Product, instead of a model")

OPTIONS = (
    option("--product", "url", help="Measure the service at this address (http://…)."),
    option("--product-key-env", help="Environment variable with the product's key."),
    option(
        "--product-timeout",
        type=click.FloatRange(min=1),
        default=1800,
        show_default=True,
        help="Seconds that the product may take for a task.",
    ),
)


def product_options(command: Command) -> Command:
    """`--product` and what belongs to it, given to the command as one `product`."""

    @wraps(command)
    def with_product(
        *args: Any,
        url: str | None,
        product_key_env: str | None,
        product_timeout: float,
        **kwargs: Any,
    ) -> None:
        product = None
        if url is not None:
            if not url.startswith(("http://", "https://")):
                raise UsageError(f"--product {url!r} is no address; write it as https://….")
            product = Product(url=url, key=_key(product_key_env), seconds=product_timeout)
        command(*args, product=product, **kwargs)

    return add_options(with_product, OPTIONS)


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = read_key(variable)
    if key is None:
        raise EnvironmentProblem(f"{variable} is not set: export {variable}=…")
    return key


def refuse_with_product(product: Product | None, given: Mapping[str, bool]) -> None:
    """A product brings its own model and tools: options about these mean nothing beside it."""
    wrong = [name for name, there in given.items() if there]
    if product is not None and wrong:
        raise UsageError(f"{wrong[0]} means nothing to a product behind HTTP; leave it out.")
