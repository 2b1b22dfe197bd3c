"""The tools of tool servers: pinned, and compared."""

from pydantic import JsonValue

from gta_bench.records.run import RunSpec, System
from gta_bench.records.tool_servers import ServerPin, describe_drift, pin_servers
from gta_bench.records.tools import ServedTool, ToolSpec, list_parameters


def spec(name: str, *, description: str = "", server: str = "s", **schema: str) -> ToolSpec:
    served = ServedTool(server=server, input_schema={"type": "object", **schema})
    return ToolSpec(name=f"{server}__{name}", description=description, served=served)


def run(pins: dict[str, ServerPin]) -> RunSpec:
    return RunSpec(
        dataset="workflow",
        mode="workflow",
        system=System(model="a/b", agent="toolcalling"),
        tasks=("1",),
        server_pins=pins,
    )


OLD = pin_servers([spec("a"), spec("b"), spec("c"), spec("d", server="t"), ToolSpec(name="OCR")])
NEW = pin_servers([spec("a", title="A"), spec("b", description="B"), spec("e")])


def test_only_tools_of_servers_are_pinned_and_the_digest_depends_on_all_of_them() -> None:
    assert {name: [*pin.tools] for name, pin in OLD.items()} == {
        "s": ["s__a", "s__b", "s__c"],
        "t": ["t__d"],
    }
    assert OLD["s"].digest == pin_servers([spec("c"), spec("b"), spec("a")])["s"].digest
    assert OLD["s"].digest != NEW["s"].digest


def test_every_change_is_named_for_servers_that_both_have() -> None:
    assert describe_drift(OLD, NEW) == [
        "s__a has another schema",
        "s__b has another description",
        "s__c is gone",
        "s__e is new",
    ]
    assert describe_drift({"t": OLD["t"]}, NEW) == []


def test_a_run_with_changed_tools_is_another_run_and_one_with_another_server_grows() -> None:
    old = run(OLD)
    found = old.difference(run(NEW))
    assert found is not None and found.name == "server_pins"
    assert old.difference(run({})) is None
    assert run({"t": OLD["t"]}).extend(run({"s": OLD["s"]})).server_pins == OLD


def test_records_without_servers_are_written_as_before() -> None:
    assert "served" not in ToolSpec(name="OCR").model_dump(mode="json")
    assert not {"server_pins", "tool_servers"} & set(run({}).model_dump(mode="json"))
    assert RunSpec.model_validate_json(run(OLD).model_dump_json()) == run(OLD)


def test_a_schema_is_summarized_whatever_it_has() -> None:
    schema: dict[str, JsonValue] = {
        "properties": {
            "store": {"type": "integer", "description": "Its number"},
            "size": {"type": ["string", "null"], "default": "L", "description": 7},
            "any": True,
        },
        "required": ["store"],
    }
    assert [(one.name, one.type, one.optional) for one in list_parameters(schema)] == [
        ("store", "int", False),
        ("size", "text", True),
        ("any", "text", True),
    ]
    assert list(list_parameters({"properties": 1, "required": 2})) == []
