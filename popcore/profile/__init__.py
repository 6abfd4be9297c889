"""Profile: what a run left, and its views."""

from popcore.profile.profile import BytesMoved, CodeletProfile, CollectiveProfile, LinkProfile, Profile, Ran, StepProfile, TileMemory, make_profile

__all__ = ["BytesMoved", "CodeletProfile", "CollectiveProfile", "LinkProfile", "Profile", "Ran", "StepProfile", "TileMemory", "make_profile"]
