"""Language-model jobs as graphs of operations.

`shape`: parameters and FLOPs; `layout`: which ranks belong together; `program`: what each rank of a
pipeline stage does, and its copies for all ranks; `blocks`, `gradients`, `step`: a training step;
`training`, `serving`: whole jobs.
"""
