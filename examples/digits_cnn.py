"""Train a small convolutional network on real digit images, on one emulated IPU: convolution, ReLU, max pooling, a fully connected layer.

The backward pass is written out: each layer's gradient is one call, and weights are updated where they lie.
"""

import numpy as np
from sklearn.datasets import load_digits

import popcore as pc
from popcore import FLOAT, program
from popcore.ops import poplin, popnn, popops
from popcore.ops.poplin import ConvParams, InputTransform
from popcore.ops.popnn import NonLinearityType, PoolingType, PoolParams, pooling

BATCH, FILTERS, CLASSES, EPOCHS, RATE = 50, 16, 10, 5, 0.5
CONV = ConvParams(FLOAT, BATCH, (8, 8), (3, 3), 1, FILTERS, input_transform=InputTransform(padding_lower=(1, 1), padding_upper=(1, 1)))
POOL = PoolParams(PoolingType.MAX, (8, 8), (2, 2), (2, 2), (0, 0), (0, 0), FILTERS, BATCH, FLOAT)
FEATURES = FILTERS * 4 * 4


def build(graph):
    """Two programs: one step of training, and the scores of a batch."""
    images = poplin.create_input(graph, CONV, name="images")
    kernels = poplin.create_weights(graph, CONV, name="kernels")
    weights = poplin.create_mat_mul_input_rhs(graph, FLOAT, (BATCH, FEATURES), (FEATURES, CLASSES), name="weights")
    labels = graph.add_variable(FLOAT, (BATCH, CLASSES), "linear", name="labels")

    forward = program.Sequence(name="forward")
    z = poplin.convolution(graph, images, kernels, CONV, False, forward)
    act = popnn.non_linearity(graph, NonLinearityType.RELU, z, forward)
    pooled = pooling.pool(graph, POOL, act, forward)
    features = pooled.reshape(BATCH, FEATURES)
    scores = popnn.softmax(graph, poplin.mat_mul(graph, features, weights, forward), forward)

    backward = program.Sequence(name="backward")
    error = popops.sub(graph, scores, labels, backward)
    of_features = poplin.mat_mul(graph, error, weights.transpose(), backward)
    of_act = pooling.pool_input_gradient(graph, POOL, act, pooled, of_features.reshape(pooled.shape), True, backward)
    of_z = popnn.non_linearity_input_gradient(graph, NonLinearityType.RELU, act, of_act, backward)
    poplin.mat_mul_acc(graph, weights, -RATE / BATCH, features.transpose(), error, backward)
    poplin.convolution_weight_update(graph, of_z, kernels, images, CONV, -RATE / BATCH, backward)

    for name, tensor in (("images", images), ("labels", labels), ("kernels", kernels), ("weights", weights)):
        graph.create_host_write(name, tensor)
    graph.create_host_read("scores", scores)
    return program.Sequence(forward, backward), forward


def main():
    digits = load_digits()
    x, y = (digits.images / 16).astype(np.float32)[:, None], digits.target
    device = pc.Device("IPU-M2000", num_ipus=1)
    graph = pc.Graph(device.target)
    engine = pc.Engine(graph, list(build(graph)), device=device)
    rng = np.random.default_rng(0)
    engine.write_tensor("kernels", (rng.standard_normal(CONV.weights_shape) / 3).astype(np.float32))
    engine.write_tensor("weights", (rng.standard_normal((FEATURES, CLASSES)) / FEATURES**0.5).astype(np.float32))

    train, test = np.arange(1500), np.arange(1500, 1750)
    for epoch in range(EPOCHS):
        for rows in rng.permutation(train).reshape(-1, BATCH):
            engine.write_tensor("images", x[rows])
            engine.write_tensor("labels", np.eye(CLASSES, dtype=np.float32)[y[rows]])
            engine.run(0)
        right = 0
        for rows in test.reshape(-1, BATCH):
            engine.write_tensor("images", x[rows])
            engine.run(1)
            right += int((engine.read_tensor("scores").argmax(axis=1) == y[rows]).sum())
        print(f"epoch {epoch + 1}: accuracy on images never seen {right / test.size:.3f}")
    assert right / test.size > 0.85
    print(poplin.report_plan_info(graph, CONV))


if __name__ == "__main__":
    main()
