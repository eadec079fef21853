"""Trains the tiny model that reads digits of 3 by 5 pixels and writes it, its glyphs and what torch answers to them.

Run from anywhere: python3 examples/tiny/generate.py, then go generate ./tiny in examples.
"""
import json
import pathlib

import torch
from torch import nn

FOLDER = pathlib.Path(__file__).parent
GLYPHS = ["111101101101111", "010110010010111", "111001111100111", "111001111001111", "101101111001001",
          "111100111001111", "111100111101111", "111001010010010", "111101111101111", "111101111001111"]


class Net(nn.Module):
    """15 pixels, 32 hidden units, 10 digits."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(15, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, pixels):
        return self.fc2(torch.relu(self.fc1(pixels)))


def main():
    torch.manual_seed(7)
    glyphs = torch.tensor([[float(pixel) for pixel in glyph] for glyph in GLYPHS])
    digits = torch.arange(10)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(600):
        noisy = glyphs.repeat(8, 1) + 0.2 * torch.randn(80, 15)
        loss = nn.functional.cross_entropy(net(noisy), digits.repeat(8))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(net.state_dict(), FOLDER / "digits.pt")
    with torch.no_grad():
        logits = net(glyphs)
    assert logits.argmax(1).tolist() == digits.tolist()
    expected = {"torch": torch.__version__, "glyphs": GLYPHS, "logits": logits.tolist()}
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
