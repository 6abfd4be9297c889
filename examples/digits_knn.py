"""Nearest-neighbour classification of real digit images on every tile of one IPU.

scikit-learn brings 1,797 images of hand-written digits, 8 x 8 pixels each. The 1,472 tiles of an IPU hold one known
image each; the other 325 are asked about. A first compute set has every tile measure its image against all 325; the
distances are then exchanged, so that one tile each gets those of one question; a second compute set finds the nearest
neighbours there and lets them vote. NumPy does the same, and the answers must be equal.
"""

import numpy as np
from sklearn.datasets import load_digits

import popcore as pc
from popcore import FLOAT, HALF, INT, UNSIGNED_CHAR, Input, Matrix, MultiVertex, Output, Vector, Vertex, program

WORKERS = 6  # of a tile; they share one MultiVertex
NEIGHBOURS = 5
CLASSES = 10


class Distances(MultiVertex):
    """Squared distance of one image to each of many. Pixels are halves, sums are floats."""

    known: Input[Vector[HALF]]
    asked: Input[Matrix[HALF]]
    distance: Output[Vector[FLOAT]]

    def compute(self, worker):
        for q in range(worker, len(self.distance), WORKERS):
            total = 0.0
            for p in range(len(self.known)):
                difference = self.asked[q, p] - self.known[p]
                total += difference * difference
            self.distance[q] = total


class Vote(Vertex):
    """The class that most of the nearest neighbours have; the lower one where two have as many."""

    distance: Input[Vector[FLOAT]]
    label: Input[Vector[UNSIGNED_CHAR]]
    answer: Output[INT]
    nearest: Vector[FLOAT]  # state of the vertex: the smallest distances so far, in order
    found: Vector[INT]  # the classes they belong to
    votes: Vector[INT]  # one counter per class

    def compute(self):
        last = len(self.nearest) - 1
        for i in range(last + 1):
            self.nearest[i] = 1e30
        for i in range(len(self.distance)):
            if self.distance[i] < self.nearest[last]:
                place = last
                while place > 0 and self.nearest[place - 1] > self.distance[i]:
                    self.nearest[place] = self.nearest[place - 1]
                    self.found[place] = self.found[place - 1]
                    place -= 1
                self.nearest[place] = self.distance[i]
                self.found[place] = self.label[i]
        for c in range(len(self.votes)):
            self.votes[c] = 0
        for i in range(last + 1):
            self.votes[self.found[i]] += 1
        best = 0
        for c in range(len(self.votes)):
            if self.votes[c] > self.votes[best]:
                best = c
        self.answer = best


def build(graph, pixels, questions):
    """Variables, vertices and the program: measure, exchange, vote."""
    tiles = graph.target.num_tiles
    known = graph.add_variable(HALF, (tiles, pixels), name="known")
    asked = graph.add_variable(HALF, (questions, pixels), name="asked")
    label = graph.add_variable(UNSIGNED_CHAR, (tiles,), name="label")
    distance = graph.add_variable(FLOAT, (tiles, questions), name="distance")
    by_question = graph.add_variable(FLOAT, (questions, tiles), name="by question")
    answer = graph.add_variable(INT, (questions,), name="answer")
    pc.poputil.map_tensor_linearly(graph, asked)
    pc.poputil.map_tensor_linearly(graph, label)

    measure = graph.add_compute_set("measure")
    # Estimates are in cycles of one worker. A question takes it a subtraction and a multiply-add per 4 halves, and about 8 more.
    measure_cycles = -(-questions // WORKERS) * (2 * -(-pixels // 4) + 8)
    for tile in range(tiles):
        graph.set_tile_mapping(known[tile], tile)
        graph.set_tile_mapping(distance[tile], tile)
        vertex = graph.add_vertex(measure, Distances, {"known": known[tile], "asked": asked, "distance": distance[tile]}, tile=tile)
        graph.set_perf_estimate(vertex, measure_cycles)

    vote = graph.add_compute_set("vote")
    for q in range(questions):
        tile = q * tiles // questions
        graph.set_tile_mapping(by_question[q], tile)
        graph.set_tile_mapping(answer[q], tile)
        vertex = graph.add_vertex(vote, Vote, {"distance": by_question[q], "label": label, "answer": answer[q]}, tile=tile)
        for state, size in (("nearest", NEIGHBOURS), ("found", NEIGHBOURS), ("votes", CLASSES)):
            graph.set_field_size(vertex[state], size)
        graph.set_perf_estimate(vertex, 3 * tiles + 400)  # load, compare and branch per image; now and then one finds a place

    for name, tensor in {"known": known, "asked": asked, "label": label}.items():
        graph.create_host_write(name, tensor)
    graph.create_host_read("answer", answer)
    return program.Sequence(program.Execute(measure), program.Copy(distance.transpose(), by_question), program.Execute(vote))


def expected(known, labels, asked):
    """The same in NumPy, from the definition."""
    distance = ((asked[:, None, :] - known[None, :, :]) ** 2).sum(axis=2)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :NEIGHBOURS]
    votes = np.stack([(labels[nearest] == c).sum(axis=1) for c in range(CLASSES)], axis=1)
    return votes.argmax(axis=1)


def main():
    """Load, run, compare, print."""
    digits = load_digits()
    device = pc.Device("M2000", num_ipus=1)
    tiles = device.target.num_tiles
    images, labels = digits.data.astype(np.float16), digits.target.astype(np.uint8)

    graph = pc.Graph(device.target)
    engine = pc.Engine(graph, build(graph, images.shape[1], len(images) - tiles), device=device)
    engine.write_tensor("known", images[:tiles])
    engine.write_tensor("label", labels[:tiles])
    engine.write_tensor("asked", images[tiles:])
    engine.run()
    answer = engine.read_tensor("answer")

    right = expected(images[:tiles].astype(np.float32), labels[:tiles], images[tiles:].astype(np.float32))
    if not np.array_equal(answer, right):
        raise SystemExit(f"{np.count_nonzero(answer != right)} answers differ from NumPy's")
    profile = engine.profile()
    print(profile.summary())
    print(f"{len(answer)} digits classified on {tiles:,} tiles, every answer as in NumPy")
    print(f"accuracy {np.mean(answer == labels[tiles:]):.3f}")
    print(f"modelled device time {profile.device_seconds * 1e6:,.1f} us, {profile.total_cycles:,} cycles")


if __name__ == "__main__":
    main()
