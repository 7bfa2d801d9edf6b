import gzip

import training

log = open("log.txt", "w")
log.write("not flushed")
packed = gzip.GzipFile("packed.gz", "wb", mtime=0)
packed.write(b"not finished")
training.train(50_000)
raise KeyboardInterrupt
