"""Trains one of the reference networks with PyTorch and prints one JSON line of figures.

Compare its figures with train_bench's in the same session, on the CPU or on a GPU:

  python3 pytorch_train.py --net lenet|resnet18|matlab-cifar|mini-gpt --data DIR --batch 128 \
      --device cpu|cuda --dtype float32|bfloat16|float16 --channels-last --compile --threads 2 --steps 60
  python3 pytorch_train.py ... --ddp 2 --threads 1     # DistributedDataParallel over gloo (nccl on GPUs)

On the CPU, set OMP_WAIT_POLICY=passive. Without it, PyTorch's threads spin and slow each other down on small machines.
Its speed then halves, which would be unfair to PyTorch. --batch is the batch size of each process. All data are kept on
the device.

DIR has the IDX .gz files of MNIST or Fashion-MNIST. Without --data, the data are random, with the same shape. The
program prints:

- images_per_second over the timed steps, after --warmup steps, and the final loss;
- on a GPU, the largest memory that PyTorch used and reserved;
- with --epochs N, the seconds and the test accuracy of each epoch.

With --profile FILE, the program then profiles 20 steps, and writes the kernels to FILE, sorted by their time.
"""
import argparse
import gzip
import json
import os
import struct
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def lenet():
    """DL4J's MNIST example: 5x5x20 conv, max pool, 5x5x50 conv, max pool, dense 500 ReLU, softmax 10."""
    return nn.Sequential(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))


class Residual(nn.Module):
    def __init__(self, cin, cout, stride, proj):
        super().__init__()
        self.c1 = nn.Conv2d(cin, cout, 3, stride, 1)
        self.b1 = nn.BatchNorm2d(cout)
        self.c2 = nn.Conv2d(cout, cout, 3, 1, 1)
        self.b2 = nn.BatchNorm2d(cout)
        self.p = nn.Conv2d(cin, cout, 1, stride) if proj else None

    def forward(self, x):
        y = F.relu(self.b1(self.c1(x)))
        y = self.b2(self.c2(y))
        return F.relu(y + (self.p(x) if self.p is not None else x))


def resnet18(channels=1):
    """The d2l / DJL section 9.3 ResNet-18 variant for small images."""
    layers = [nn.Conv2d(channels, 64, 3, 1, 1), nn.BatchNorm2d(64), nn.ReLU()]
    cin = 64
    for i, c in enumerate((64, 128, 256, 512)):
        for j in range(2):
            first = j == 0 and i > 0
            layers.append(Residual(cin, c, 2 if first else 1, first))
            cin = c
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def matlab_cifar(width=32, depth=4):
    """MATLAB's parallel CIFAR-10 example: three blocks of `depth` conv-bn-relu, max pools between."""
    layers, cin = [], 3
    for i, c in enumerate((width, 2 * width, 4 * width)):
        for _ in range(depth):
            layers += [nn.Conv2d(cin, c, 3, 1, 1), nn.BatchNorm2d(c), nn.ReLU()]
            cin = c
        layers.append(nn.MaxPool2d(2) if i < 2 else nn.AvgPool2d(8))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(cin, 10))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = self.qkv(self.n1(x)).view(n, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, length, width)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.n2(x))))


class MiniGpt(nn.Module):
    """A character-level GPT: 3 blocks of 128, 4 heads, 128 tokens of 256."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(256, 128), nn.Embedding(128, 128)
        self.blocks = nn.Sequential(*(Block(128, 4) for _ in range(3)))
        self.norm, self.head = nn.LayerNorm(128), nn.Linear(128, 256, bias=False)

    def forward(self, x):
        x = self.tokens(x) + self.places.weight
        return self.head(self.norm(self.blocks(x))).flatten(0, 1)


def idx(path):
    with gzip.open(path) as f:
        _, _, t, nd = struct.unpack("BBBB", f.read(4))
        dims = struct.unpack(">" + "I" * nd, f.read(4 * nd))
        return np.frombuffer(f.read(), np.uint8).reshape(dims)


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--net", default="lenet")
    p.add_argument("--data")
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--device", default="cpu")
    p.add_argument("--dtype", default="float32")
    p.add_argument("--channels-last", action="store_true")
    p.add_argument("--compile", action="store_true")
    p.add_argument("--compile-mode", default="max-autotune", help="on a GPU")
    p.add_argument("--no-tf32", action="store_true", help="float32 on a GPU without TF32")
    p.add_argument("--profile")
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--warmup", type=int, default=10)
    p.add_argument("--epochs", type=int, default=0)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--momentum", type=float, default=0.9)
    p.add_argument("--ddp", type=int, default=1, help="processes, one replica each")
    return p.parse_args()


def main(rank, a):
    if a.ddp > 1:
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29511")
        os.environ.setdefault("USE_LIBUV", "0")
        torch.distributed.init_process_group("nccl" if a.device == "cuda" else "gloo", rank=rank, world_size=a.ddp)
        if a.device == "cuda":
            torch.cuda.set_device(rank)
    if a.threads:
        torch.set_num_threads(a.threads)
    torch.manual_seed(123)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = not a.no_tf32
    shape = (3, 32, 32) if a.net == "matlab-cifar" else (1, 28, 28)
    if a.net == "mini-gpt":
        X, Y = torch.randint(0, 256, (a.batch * 8, 128)), torch.randint(0, 256, (a.batch * 8, 128))
        XT, YT = X, Y
    elif a.data:
        X = torch.from_numpy(idx(os.path.join(a.data, "train-images-idx3-ubyte.gz")).copy()).float().div_(255).view(-1, *shape)
        Y = torch.from_numpy(idx(os.path.join(a.data, "train-labels-idx1-ubyte.gz")).copy()).long()
        XT = torch.from_numpy(idx(os.path.join(a.data, "t10k-images-idx3-ubyte.gz")).copy()).float().div_(255).view(-1, *shape)
        YT = torch.from_numpy(idx(os.path.join(a.data, "t10k-labels-idx1-ubyte.gz")).copy()).long()
    else:
        X, Y = torch.rand(a.batch * 8, *shape), torch.randint(0, 10, (a.batch * 8,))
        XT, YT = X, Y
    X, Y, XT, YT = (t.to(a.device) for t in (X, Y, XT, YT))
    net = {"lenet": lenet, "resnet18": resnet18, "matlab-cifar": matlab_cifar, "mini-gpt": MiniGpt}[a.net]().to(a.device)
    if a.channels_last:
        net = net.to(memory_format=torch.channels_last)
    if a.ddp > 1:
        net = nn.parallel.DistributedDataParallel(net)
    opt = torch.optim.SGD(net.parameters(), a.lr, a.momentum, nesterov=a.momentum > 0)
    dtype = getattr(torch, a.dtype)
    amp = torch.autocast(a.device, dtype=torch.bfloat16 if dtype == torch.float32 else dtype,
                         enabled=dtype != torch.float32)
    scaler = torch.amp.GradScaler(a.device, enabled=dtype == torch.float16)

    def step(x, y):
        with amp:
            loss = F.cross_entropy(net(x), y.flatten())
        opt.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        return loss

    if a.compile:
        net = torch.compile(net, mode=a.compile_mode if a.device == "cuda" else None)
    sync = torch.cuda.synchronize if a.device == "cuda" else (lambda: None)
    n = len(X) // a.batch

    def batch(i, perm):
        s = perm[(i % n) * a.batch:(i % n + 1) * a.batch]
        x = X[s]
        # Tokens have no channels.
        last = a.channels_last and x.dim() == 4
        return (x.contiguous(memory_format=torch.channels_last) if last else x), Y[s]

    out = {"peer": "pytorch " + torch.__version__, **vars(a)}
    torch.manual_seed(1000 + rank)
    perm = torch.randperm(len(X), device=a.device)
    n //= a.ddp
    for i in range(a.warmup):
        step(*batch(i, perm))
    sync()
    if a.epochs:
        out["epoch_seconds"], out["test_accuracy"] = [], []
        for _ in range(a.epochs):
            sync()
            t = time.perf_counter()
            net.train()
            perm = torch.randperm(len(X), device=a.device)
            for i in range(n):
                loss = step(*batch(i, perm))
            sync()
            out["epoch_seconds"].append(round(time.perf_counter() - t, 4))
            net.eval()
            with torch.no_grad(), amp:
                ok = sum((net(XT[i:i + 1000]).argmax(1) == YT[i:i + 1000]).sum().item() for i in range(0, len(XT), 1000))
            out["test_accuracy"].append(ok / len(XT))
        out["images_per_second"] = round(a.ddp * n * a.batch / min(out["epoch_seconds"]), 1)
    else:
        t = time.perf_counter()
        for i in range(a.steps):
            loss = step(*batch(i, perm))
        sync()
        out["images_per_second"] = round(a.ddp * a.steps * a.batch / (time.perf_counter() - t), 1)
    out["loss"] = round(loss.item(), 4)
    if a.device == "cuda":
        out["peak_memory_mib"] = round(torch.cuda.max_memory_allocated() / 2**20, 1)
        out["held_memory_mib"] = round(torch.cuda.max_memory_reserved() / 2**20, 1)
    if a.profile:
        with torch.profiler.profile() as profile:
            for i in range(20):
                step(*batch(i, perm))
            sync()
        with open(a.profile, "w") as f:
            f.write(profile.key_averages().table(sort_by="self_cuda_time_total", row_limit=30, max_name_column_width=90))
    if rank == 0:
        print(json.dumps(out))


if __name__ == "__main__":
    args = parse()
    if args.ddp > 1:
        torch.multiprocessing.spawn(main, (args,), args.ddp)
    else:
        main(0, args)
