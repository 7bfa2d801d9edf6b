"""Which configuration holds where, and what a wrong one says."""

from pathlib import Path

import pytest

from syncscope.policy import Budgets, ConfigError, Override, Policy, default_gate, load_policy, own_packages

EXPECT = """
[tool.syncscope]
own = ["our_models"]
gate = ["SYN101", "CPY201"]

expect = [
  { rule = "SYN102", file = "train.py", function = "log_*", reason = "one read an epoch" },
  # [a comment { with brackets
  { rule = "SYN1", reason = "a [bracket] # and a hash" },
]
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_without_configuration_the_default_gate_holds_and_nothing_is_expected(tmp_path: Path) -> None:
    assert load_policy(tmp_path) == Policy(gate=default_gate(), expect=(), own=(), folders=(tmp_path,))


def test_pyproject_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "pyproject.toml", EXPECT)
    policy = load_policy(tmp_path)
    assert policy.gate == ("SYN101", "CPY201")
    assert policy.own == ("our_models",)
    first, second = policy.expect
    assert (first.rule, first.file, first.function) == ("SYN102", "train.py", "log_*")
    assert first.reason == "one read an epoch"
    assert first.where == "pyproject.toml:7"
    assert {"SYN101", "SYN102"} <= second.codes
    assert second.where == "pyproject.toml:9"


def test_the_nearest_configuration_above_holds(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", '[tool.syncscope]\nown = ["far"]\n')
    write(tmp_path / "a" / "pyproject.toml", '[tool.syncscope]\nown = ["near"]\n')
    write(tmp_path / "a" / "b" / "pyproject.toml", "[project]\nname = 'no table of ours'\n")
    assert load_policy(tmp_path / "a" / "b").own == ("near",)


def test_a_file_of_its_own_wins_over_pyproject_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", '[tool.syncscope]\nown = ["shared"]\n')
    write(tmp_path / "syncscope.toml", 'own = ["single"]\n')
    assert load_policy(tmp_path).own == ("single",)


def test_a_named_file_is_used_instead_of_searching(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", '[tool.syncscope]\nown = ["found"]\n')
    named = write(tmp_path / "ci" / "gate.toml", 'own = ["named"]\n')
    assert load_policy(tmp_path, named).own == ("named",)


def test_limits_overrides_and_budgets_are_read(tmp_path: Path) -> None:
    write(
        tmp_path / "syncscope.toml",
        """
        expect = [{ rule = "SYN102", max_per_step = 2, reason = "two reads" }]
        [budgets]
        max_unexpected_syncs_per_step = 3
        max_exposed_copy_ms = 1.5
        max_stall_share = 0.25
        [[overrides]]
        path = "scripts/*"
        ignore = ["SYN105"]
        [[overrides]]
        path = "src/hot/*"
        gate = ["SYN101", "OVL"]
        """,
    )
    policy = load_policy(tmp_path)
    assert policy.expect[0].max_per_step == 2
    assert policy.budgets == Budgets(max_unexpected_syncs_per_step=3, max_exposed_copy_ms=1.5, max_stall_share=0.25)
    scripts, hot = policy.overrides
    assert scripts == Override(path="scripts/*", gate=None, ignore=("SYN105",))
    assert hot.gate is not None and {"SYN101", "OVL301", "OVL303"} <= set(hot.gate)


@pytest.mark.parametrize("config", [None, "named.toml"])
def test_files_are_looked_for_from_the_configurations_folder_on(config: str | None, tmp_path: Path) -> None:
    write(tmp_path / "syncscope.toml", "own = []\n")
    here = write(tmp_path / "a" / "train.py", "").parent
    named = write(tmp_path / "ci" / config, "own = []\n") if config else None
    assert load_policy(here, named).folders == ((here,) if config else (tmp_path, here))


def test_the_default_gate_may_be_written_out(tmp_path: Path) -> None:
    write(tmp_path / "syncscope.toml", f"gate = {list(default_gate())}\n")
    assert load_policy(tmp_path).gate == default_gate()


def test_own_packages_do_not_look_at_the_rules(tmp_path: Path) -> None:
    write(tmp_path / "syncscope.toml", 'own = ["ours"]\ngate = ["NO999"]\n')
    assert own_packages(tmp_path) == ("ours",)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("expct = []", 'tool.syncscope: unknown key "expct", did you mean "expect"?'),
        ("expect = 3", "tool.syncscope.expect: expected a list, got a number"),
        ("min_steps = 1e3", "tool.syncscope.min_steps: expected a whole number, written without a point and an exp"),
        ('gate = "SYN101"', "tool.syncscope.gate: expected a list, got a string"),
        ('gate = ["SYN101", 2]', "tool.syncscope.gate[1]: expected a string, got a number"),
        ('gate = ["SYN901"]', 'tool.syncscope.gate: unknown rule "SYN901", did you mean "SYN'),
        ('gate = [""]', 'tool.syncscope.gate: unknown rule ""'),
        ('expect = [{ rule = "SYN102" }]', 'tool.syncscope.expect[0]: missing key "reason"'),
        ('expect = [{ rule = "SYN102", reason = " " }]', "tool.syncscope.expect[0].reason: must not be empty"),
        ('expect = [{ reason = "x" }]', 'tool.syncscope.expect[0]: missing key "rule"'),
        (
            'expect = [{ rule = "SYN102", fil = "a", reason = "x" }]',
            'tool.syncscope.expect[0]: unknown key "fil", did you mean "file"?',
        ),
        (
            'expect = [{ rule = "SYN102", reason = "x", max_per_step = 0 }]',
            "tool.syncscope.expect[0].max_per_step: expected a number > 0",
        ),
        (
            "budgets = { max_stal_share = 1 }",
            'tool.syncscope.budgets: unknown key "max_stal_share", did you mean "max_stall_share"?',
        ),
        ("budgets = { max_stall_share = 5 }", "tool.syncscope.budgets.max_stall_share: expected a number <= 1"),
        ('budgets = { max_stall_share = "5%" }', "tool.syncscope.budgets.max_stall_share: expected a number, got a s"),
        ('overrides = [{ path = "a" }]', "tool.syncscope.overrides[0]: needs gate or ignore"),
        ('overrides = [{ gate = ["SYN"] }]', 'tool.syncscope.overrides[0]: missing key "path"'),
        (
            'overrides = [{ path = "a", ignore = ["SYN99"] }]',
            'tool.syncscope.overrides[0].ignore: unknown rule "SYN99"',
        ),
        ('expect = [{ rule = "XXX", reason = "x" }]', 'tool.syncscope.expect[0].rule: unknown rule "XXX"'),
    ],
)
def test_a_wrong_entry_names_file_key_and_reason(text: str, reason: str, tmp_path: Path) -> None:
    path = write(tmp_path / "pyproject.toml", f"[tool.syncscope]\n{text}\n")
    with pytest.raises(ConfigError) as caught:
        load_policy(tmp_path)
    assert str(caught.value).startswith(f"{path}: {reason}")
    assert "\n" not in str(caught.value)


def test_keys_of_a_file_of_its_own_have_no_table_before_them(tmp_path: Path) -> None:
    path = write(tmp_path / "syncscope.toml", "gate = 1\n")
    with pytest.raises(ConfigError) as caught:
        load_policy(tmp_path)
    assert str(caught.value) == f"{path}: gate: expected a list, got a number"


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("pyproject.toml", b"[tool", "not TOML: "),
        ("pyproject.toml", b"\xff\xfe", "not UTF-8 text"),
        ("pyproject.toml", b"[project]\n", "has no [tool.syncscope] table"),
        ("pyproject.toml", b"[tool]\nsyncscope = 3\n", "tool.syncscope: must be a table"),
        ("missing.toml", None, "No such file or directory"),
    ],
)
def test_a_named_file_that_cannot_be_used_says_why(name: str, data: bytes | None, reason: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        load_policy(tmp_path, path)
    assert str(caught.value).startswith(f"{path}: {reason}")


def test_a_file_that_is_nested_too_deeply_is_wrong_configuration(tmp_path: Path) -> None:
    (tmp_path / "syncscope.toml").write_text(f"gate = {'[' * 5000}{']' * 5000}\n")
    with pytest.raises(ConfigError, match=r"syncscope\.toml: (nested too deeply|not TOML: )"):
        load_policy(tmp_path)
