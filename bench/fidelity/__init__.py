"""Modelled against published: each row of the published figures that a popcore program can reproduce."""
