"""State dicts with the names of models that people use, in small sizes: ResNet-50, a Llama of Hugging Face, an LSTM, a transformer."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import TORCH2, Case
from torch import nn

case = Case(__file__)


class Tagger(nn.Module):
    """Recurrent layers of every sort: one layer, several, both directions, a cell."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 3)
        self.encoder = nn.LSTM(3, 2, num_layers=2, bidirectional=True)
        self.lstm = nn.LSTM(4, 2)
        self.gru = nn.GRU(2, 2, bidirectional=True)
        self.cell = nn.LSTMCell(2, 2)
        self.dropout = nn.Dropout()
        self.head = nn.Linear(2, 5)


class Vision(nn.Module):
    """What package nn has, and what it has not."""

    def __init__(self):
        super().__init__()
        self.cls_token = nn.Parameter(torch.randn(1, 1, 4))
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.ReLU(), nn.GroupNorm(2, 4), nn.PReLU())
        self.features = nn.Sequential(nn.Conv2d(4, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3), nn.ReLU(), nn.Conv2d(6, 4, 1))
        self.up = nn.ConvTranspose2d(4, 2, 3)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2)
        self.decoder = nn.TransformerDecoderLayer(4, 2, 8)
        self.cross_attn = nn.MultiheadAttention(4, 2, kdim=3, vdim=5)
        self.heads = nn.ModuleDict({"class": nn.Linear(4, 3), "2d": nn.Linear(4, 2)})


case.save("lstm", Tagger().state_dict())
case.save("vision", Vision().state_dict())
if TORCH2:
    import torchvision
    import transformers

    with torch.device("meta"):
        big = torchvision.models.resnet50(num_classes=64).state_dict()
    # A sixty-fourth of every width: the names, and which sizes are the same, are what matters.
    small = {name: torch.randn([n // 64 if n >= 64 else n for n in t.shape]).to(t.dtype) for name, t in big.items()}
    case.save("resnet50", small, form="legacy")
    config = transformers.LlamaConfig(
        vocab_size=32, hidden_size=16, intermediate_size=24, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=8)
    case.save("llama", transformers.LlamaForCausalLM(config).bfloat16().state_dict(), suffix=".bin")
case.finish()
