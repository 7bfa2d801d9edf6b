"""Records whose fields are columns: arrays of one length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_: bool) -> Any:
        return lambda kind: kind


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False)
class Columns:
    """A record with a field for each annotation of its class, given by name. It does not change.

    Such records are not compared: their arrays are not compared as a whole. A dataclass would do the same, but to make
    one takes a millisecond on a slow machine, and there are some twenty.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    """The names of the fields, those of base classes first."""

    def __init_subclass__(cls) -> None:
        inherited = [name for base in reversed(cls.__bases__) for name in getattr(base, "columns", ())]
        cls.columns = tuple(dict.fromkeys((*inherited, *cls.__annotations__)))

    def __init__(self, **columns: Any) -> None:
        """Raises TypeError if a column is missing, or one is not of the class."""
        if wrong := columns.keys() ^ set(self.columns):
            raise TypeError(f"{type(self).__name__} has or lacks the columns {', '.join(sorted(wrong))}")
        self.__dict__.update(columns)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} does not change")

    def replace(self, **changes: Any) -> Self:
        """The same record with other columns in place of some."""
        return type(self)(**{**{name: getattr(self, name) for name in self.columns}, **changes})
