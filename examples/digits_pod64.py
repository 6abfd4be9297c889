"""Train a classifier of real digit images on an emulated POD64: 64 replicas, micro-batches, a ring all-reduce a step.

Softmax regression with its gradient written out. Every replica sees its own twenty images a step, in five
micro-batches of four; gradients are summed over all 64 IPUs before each replica makes the same update.
"""

import itertools

import numpy as np
from sklearn.datasets import load_digits

import popcore as pc
from popcore import FLOAT, program
from popcore.ops import gcl, poplin, popnn, popops

REPLICAS, BATCH, MICRO_BATCHES, STEPS, RATE = 64, 4, 5, 30, 2.0
PIXELS, CLASSES = 64, 10
PER_STEP = REPLICAS * BATCH * MICRO_BATCHES  # the whole training set


def build(graph):
    """The program of one step; every replica runs it on its own data."""
    images = graph.add_variable(FLOAT, (BATCH, PIXELS), name="images")
    labels = graph.add_variable(FLOAT, (BATCH, CLASSES), name="labels")
    for tensor in (images, labels):
        pc.poputil.map_tensor_linearly(graph, tensor)
    weights = poplin.create_mat_mul_input_rhs(graph, FLOAT, (BATCH, PIXELS), (PIXELS, CLASSES), name="weights")
    gradient = graph.clone(weights, name="gradient")
    image_stream = graph.add_host_to_device_fifo("images", FLOAT, BATCH * PIXELS)
    label_stream = graph.add_host_to_device_fifo("labels", FLOAT, BATCH * CLASSES)

    micro = program.Sequence(program.Copy(image_stream, images), program.Copy(label_stream, labels), name="micro-batch")
    logits = poplin.mat_mul(graph, images, weights, micro)
    error = popops.sub(graph, popnn.softmax(graph, logits, micro), labels, micro)
    poplin.mat_mul_acc(graph, gradient, 1.0, images.transpose(), error, micro)

    step = program.Sequence(name="step")
    popops.zero(graph, gradient, step)
    step.add(program.Repeat(MICRO_BATCHES, micro))
    gcl.all_reduce_in_place_cross_replica(graph, gradient, gcl.CollectiveOperator.ADD, step, options={"method": "ring"})
    popops.scaled_add_to(graph, weights, gradient, -RATE / PER_STEP, step)
    graph.create_host_write("weights", weights)
    graph.create_host_read("weights", weights)
    return step


def feed(rows, replica):
    """A stream callback that hands a replica its micro-batches, over and over."""
    batches = itertools.cycle(rows.reshape(REPLICAS, MICRO_BATCHES, -1)[replica])

    def fill(buffer):
        buffer[:] = next(batches)

    return fill


def main():
    digits = load_digits()
    x, y = (digits.data / 16).astype(np.float32), digits.target
    onehot = np.eye(CLASSES, dtype=np.float32)[y]

    device = pc.Device("POD64")
    graph = pc.Graph(device.target, replication_factor=REPLICAS)
    engine = pc.Engine(graph, build(graph), device=device)
    engine.write_tensor("weights", np.zeros((PIXELS, CLASSES), np.float32))
    for replica in range(REPLICAS):
        engine.connect_stream("images", feed(x[:PER_STEP], replica), replica=replica)
        engine.connect_stream("labels", feed(onehot[:PER_STEP], replica), replica=replica)
    for _ in range(STEPS):
        engine.run()

    weights = engine.read_tensor("weights")
    assert all(np.array_equal(weights[0], each) for each in weights), "replicas drifted apart"
    accuracy = float((np.argmax(x[PER_STEP:] @ weights[0], axis=1) == y[PER_STEP:]).mean())
    assert accuracy > 0.85
    profile = engine.profile()
    print(profile.summary())
    print(f"{STEPS} steps of {PER_STEP} images on {REPLICAS} IPUs; {len(x) - PER_STEP} images to test on")
    print(f"accuracy {accuracy:.3f}")
    print(f"modelled device time {profile.device_seconds * 1e3:.3f} ms, {profile.total_cycles:,} cycles")


if __name__ == "__main__":
    main()
