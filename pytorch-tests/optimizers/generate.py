"""Training checkpoints: optimizer and scheduler states, averaged models, gradient scaler, random states."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, TORCH2, ramp
from torch import nn, optim


def trained(build):
    """The state of an optimizer after two steps on a small model."""
    torch.manual_seed(1)
    model = nn.Linear(3, 2)
    optimizer = build(model.parameters())
    for _ in range(2):
        def loss():
            optimizer.zero_grad()
            out = model(ramp(4, 3)).pow(2).sum()
            out.backward()
            return out
        optimizer.step(loss)
    return model, optimizer


case = Case(__file__)
makers = {
    "sgd": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True), "adam": lambda p: optim.Adam(p, amsgrad=True),
    "adamw": lambda p: optim.AdamW(p, weight_decay=0.01), "rmsprop": lambda p: optim.RMSprop(p, centered=True),
    "lbfgs": lambda p: optim.LBFGS(p, history_size=2), "adagrad": optim.Adagrad}
case.save("optimizers", {name: trained(make)[1].state_dict() for name, make in makers.items()})
model, optimizer = trained(makers["adamw"])
schedulers = {
    "step": optim.lr_scheduler.StepLR(optimizer, 3), "cosine": optim.lr_scheduler.CosineAnnealingLR(optimizer, 5),
    "plateau": optim.lr_scheduler.ReduceLROnPlateau(optimizer), "one_cycle": optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 10)}
case.save("training", {
    "epoch": 3, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
    "schedulers": {name: scheduler.state_dict() for name, scheduler in schedulers.items()},
    "ema": optim.swa_utils.AveragedModel(model).state_dict(), "scaler": torch.cuda.amp.GradScaler(enabled=False).state_dict(),
    "rng": torch.get_rng_state()[:16], "losses": [1.0, 0.5], "best": None}, suffix=".pth.tar",
    flags={"more_opaque": True, "more_values": True})
case.save("whole_optimizer", {"optimizer": trained(makers["sgd"])[1], "model": model.state_dict()},
          flags={"more_opaque": True, "more_values": True, "more_tensors": True})
case.finish()
