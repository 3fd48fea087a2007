"""Has the compiler drop code behind a constant of the state before it looks at that code.

Kernels ask `if not s.plain and …` before what a plain simulation has no use for. For LLVM that is a
constant, but by then everything behind it, and all that is called from there, has been typed and
translated, which is most of the compile time. So the attribute becomes a constant in Numba's own
intermediate form, and Numba's own pass for dead branches does the rest.
"""

from __future__ import annotations

from typing import Any

from numba.core import ir
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.untyped_passes import IRProcessing

from roce_gym.sim.handle import StateType


def _reads_plain(value: Any) -> bool:
    return isinstance(value, ir.Expr) and value.op == "getattr" and value.attr == "plain"


@register_pass(mutates_CFG=False, analysis_only=False)
class _StateConstants(FunctionPass):
    """Replaces `s.plain` by True or False wherever `s` is an argument."""

    _name = "roce_gym_state_constants"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Called by Numba for each function; returns whether anything has changed."""
        plain = {
            name: kind.plain
            for name, kind in zip(state.func_ir.arg_names, state.args, strict=False)
            if isinstance(kind, StateType)
        }
        changed = False
        for block in state.func_ir.blocks.values() if plain else ():
            for statement in block.find_insts(ir.Assign):
                value = statement.value
                if _reads_plain(value) and value.value.name in plain:
                    constant = ir.Const(plain[value.value.name], value.loc)
                    definitions = state.func_ir._definitions[statement.target.name]
                    definitions[definitions.index(value)] = constant
                    statement.value = constant
                    changed = True
        return changed


class Compiler(CompilerBase):
    """Numba's compiler with that pass in front."""

    def define_pipelines(self) -> list[Any]:
        """The passes to go through."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_StateConstants, IRProcessing)
        passes.finalize()
        return [passes]
