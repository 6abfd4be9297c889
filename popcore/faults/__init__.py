"""Faults on purpose: parts of the emulated machine fail at a step that is chosen, so that what then happens can be tried.

::

    with faults.inject(engine, [faults.BitFlip("w", element=3, bit=12, at="update", execution=40)]) as injected:
        engine.run()

docs/faults.md says what each kind does to a run. The same faults always happen at the same place; without them nothing is looked at.
"""

from popcore.faults.injection import Injection, inject
from popcore.faults.kinds import BitFlip, CallbackFails, CallbackLate, DeadTile, Fault, IpuLost, LinkDown, LinkSlow, TruncatedTransfer

__all__ = ["BitFlip", "CallbackFails", "CallbackLate", "DeadTile", "Fault", "Injection", "IpuLost", "LinkDown", "LinkSlow", "TruncatedTransfer", "inject"]
