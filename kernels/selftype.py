"""The types of ``self`` and of its fields: places and views in tile memory, kept in registers.

Loads and stores carry which field they belong to. Fields of one compute set never overlap when one of them is
written (popcore checks that), so LLVM may take accesses of different fields for independent, which lets it
vectorise a loop that reads one field and writes another without comparing addresses first.
"""

from numba.core import cgutils, types
from numba.core.datamodel import models, register_default
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AttributeTemplate

from popcore.kernels import guard
from popcore.kernels.memory import COUNTER, TABLES, Scope, tag
from popcore.kernels.operation import I32, I64, POINTER, lowering_registry, state, typing_registry
from popcore.kernels.values import BYTES, STORED, from_stored, to_stored


class ViewType(types.Type):
    """A view of elements ``code``; ``scope`` is None once it may be of one field or another."""

    kind = ""

    def __init__(self, code, writable, scope):
        self.code, self.writable, self.scope = code, writable, scope
        field = "" if scope is None else f",{scope.name}/{'/'.join(scope.others)}"
        super().__init__(f"popcore.{self.kind}({code},{'rw' if writable else 'r'}{field})")

    @property
    def user_name(self):
        return f"a {self.kind}"

    def like(self, kind):
        """Another kind of view of the same elements."""
        return kind(self.code, self.writable, self.scope)

    def unify(self, typingctx, other):
        if type(other) is type(self) and other.code == self.code:
            return type(self)(self.code, self.writable and other.writable, None)
        return None

    def can_convert_to(self, typingctx, other):
        same = type(other) is type(self) and other.code == self.code and other.scope is None
        return Conversion.safe if same and (self.writable or not other.writable) else None


class PlaceType(ViewType):
    kind = "scalar"


class VectorType(ViewType):
    kind = "vector"


class MatrixType(ViewType):
    kind = "matrix"


class ListType(ViewType):
    kind = "list"


MEMBERS = {
    PlaceType: (("data", types.voidptr),),
    VectorType: (("data", types.voidptr), ("count", types.int64)),
    MatrixType: (("data", types.voidptr), ("count", types.int64), ("columns", types.int64)),
    ListType: (("data", types.voidptr), ("table", types.voidptr), ("first", types.int64), ("count", types.int64)),
}
"""What a view is in registers. A list has its tile's memory, the table of rows, and where its pieces begin there."""

KINDS = {"scalar": PlaceType, "vector": VectorType, "matrix": MatrixType, "list": ListType}


def _register_view(kind):
    @register_default(kind)
    class Model(models.StructModel):
        def __init__(self, dmm, fe_type):
            super().__init__(dmm, fe_type, list(MEMBERS[kind]))

    @lowering_registry.lower_cast(kind, kind)
    def _cast(context, builder, fromty, toty, value):
        return value


for _kind in MEMBERS:
    _register_view(_kind)


class SelfType(types.Type):
    """``self``: a field under each name. ``fields`` are (name, code, shape, writable)."""

    def __init__(self, name, fields):
        self.views = {}
        names = [f[0] for f in fields]
        for field, code, shape, writable in fields:
            scope = Scope(field, [n for n in names if n != field] + [TABLES, COUNTER])
            self.views[field] = KINDS[shape](code, writable, scope)
        super().__init__(f"popcore.self({name};{','.join(map(str, self.views.values()))})")


@register_default(SelfType)
class SelfModel(models.StructModel):
    def __init__(self, dmm, fe_type):
        # A member whose name begins with an underscore would be dropped silently.
        super().__init__(dmm, fe_type, [(f"field_{name}", view) for name, view in fe_type.views.items()])


@typing_registry.register_attr
class SelfAttribute(AttributeTemplate):
    key = SelfType

    def generic_resolve(self, typ, attr):
        return typ.views.get(attr)


@lowering_registry.lower_getattr_generic(SelfType)
def _self_field(context, builder, typ, value, attr):
    return getattr(cgutils.create_struct_proxy(typ)(context, builder, value=value), f"field_{attr}")


def opened(context, builder, ty, value):
    """The members of a view."""
    return cgutils.create_struct_proxy(ty)(context, builder, value=value)


def made(context, builder, ty, **members):
    """A view of these members."""
    proxy = cgutils.create_struct_proxy(ty)(context, builder)
    for name, value in members.items():
        setattr(proxy, name, value)
    return proxy._getvalue()


# -- memory --


def element(builder, data, index, stored):
    """The address of element ``index`` of memory at ``data``."""
    return builder.gep(builder.bitcast(data, stored.as_pointer()), [index], inbounds=True)


def _guard(check, builder, view, address):
    """Check the access under way against the shadow, if it is to be."""
    if state.access is not None:
        block, site = state.access
        at = builder.bitcast(address, POINTER)
        with guard.where_shadowed(builder, block, at, view.scope is not None):
            check(builder, block, site, at, BYTES[view.code], state.shared)


def load_element(builder, view, data, index):
    """Element ``index`` of a view, as a value."""
    address = element(builder, data, index, STORED[view.code])
    _guard(guard.read, builder, view, address)
    loaded = tag(builder, builder.load(address), view.scope)
    return from_stored(builder, loaded, view.code)


def store_element(builder, view, data, index, value, source):
    """Store ``value``, of type ``source``, converted."""
    stored = to_stored(builder, value, source, view.code)
    address = element(builder, data, index, STORED[view.code])
    _guard(guard.written, builder, view, address)
    tag(builder, builder.store(stored, address), view.scope)


def load_word(builder, table, index, others=()):
    """Word ``index`` of a table of rows, as 64 bits. ``others`` are the fields, which the table is none of."""
    loaded = builder.load(element(builder, table, index, I32))
    if others:
        tag(builder, loaded, Scope(TABLES, others))
    return builder.sext(loaded, I64)
