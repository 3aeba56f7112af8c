# One rank of a training job over gloo: computes, reduces with all others, and checks each sum.
# Arguments: rank, ranks, address of rank 0, its port, elements of a sum, seconds of computing.
import datetime, sys, time
import torch
import torch.distributed as dist

rank, ranks, address, port, elements = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5])
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="tcp://%s:%s" % (address, port), rank=rank, world_size=ranks,
                        timeout=datetime.timedelta(minutes=2))
base = torch.arange(elements, dtype=torch.float32).remainder_(97)
step = 0
while True:
    time.sleep(float(sys.argv[6]))
    x = base + float(rank + step % 7)
    dist.all_reduce(x)
    want = base * float(ranks) + float(ranks * (ranks - 1) // 2 + ranks * (step % 7))
    print(int((x != want).sum()), flush=True)
    step += 1
