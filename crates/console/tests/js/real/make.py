#!/usr/bin/env python3
"""Makes real.json: bytes of znodes as real programs write them, by name, in base64.

Needs a JDK, Debian's libcurator-discovery-java, liblz4-java and libsnappy-java, and PyPI's lz4, cramjam and protobuf.
"""

import base64
import glob
import gzip
import json
import pathlib
import subprocess
import tempfile
import zlib

import cramjam
import lz4.block
import lz4.frame
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

HERE = pathlib.Path(__file__).parent
TEXT = json.dumps([{"leader": 1, "replicas": [1, 2, 3], "leader_epoch": epoch} for epoch in range(20)]).encode()
JARS = "curator-* jackson-* lz4-java snappy-java zookeeper zookeeper-jute slf4j-api slf4j-nop guava"


def java() -> dict[str, bytes]:
    """What the Java programs write."""
    jars = ":".join(path for name in JARS.split() for path in glob.glob(f"/usr/share/java/{name}.jar"))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["javac", "-cp", jars, "-d", folder, str(HERE / "Znodes.java")], check=True)
        run = ["java", "-cp", f"{folder}:{jars}", "Znodes", TEXT.decode()]
        lines = subprocess.run(run, check=True, capture_output=True, text=True).stdout.splitlines()
    return {name: base64.b64decode(data) for name, data in (line.split(" ") for line in lines)}


def protobuf() -> dict[str, bytes]:
    """A message as HBase's ServerName and RegionState have it, and one with each wire type."""
    file = descriptor_pb2.FileDescriptorProto(name="znodes.proto", package="znodes")
    kinds = descriptor_pb2.FieldDescriptorProto
    one = file.message_type.add(name="ServerName")
    one.field.add(name="host_name", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    one.field.add(name="port", number=2, type=kinds.TYPE_UINT32, label=kinds.LABEL_OPTIONAL)
    one.field.add(name="start_code", number=3, type=kinds.TYPE_UINT64, label=kinds.LABEL_OPTIONAL)
    two = file.message_type.add(name="MetaRegionServer")
    two.field.add(
        name="server", number=1, type=kinds.TYPE_MESSAGE, type_name=".znodes.ServerName", label=kinds.LABEL_OPTIONAL
    )
    two.field.add(name="rpc_version", number=2, type=kinds.TYPE_UINT32, label=kinds.LABEL_OPTIONAL)
    two.field.add(name="share", number=4, type=kinds.TYPE_DOUBLE, label=kinds.LABEL_OPTIONAL)
    two.field.add(name="mask", number=5, type=kinds.TYPE_FIXED32, label=kinds.LABEL_OPTIONAL)
    two.field.add(name="change", number=6, type=kinds.TYPE_SINT64, label=kinds.LABEL_OPTIONAL)
    two.field.add(name="blob", number=7, type=kinds.TYPE_BYTES, label=kinds.LABEL_OPTIONAL)
    two.field.add(name="slots", number=8, type=kinds.TYPE_INT32, label=kinds.LABEL_REPEATED)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    make = message_factory.GetMessageClass(pool.FindMessageTypeByName("znodes.MetaRegionServer"))
    message = make(rpc_version=0, share=1.5, mask=7, change=-3, blob=b"\x00\xff\x80", slots=[1, 150, 3])
    message.server.host_name = "rs1.example.org"
    message.server.port = 16020
    message.server.start_code = 1700000000000
    written = message.SerializeToString()
    maker = b"master:16000"
    return {
        "protobuf": written,
        "hbase": b"\xff" + len(maker).to_bytes(4, "big") + maker + b"PBUF" + written,
    }


def python() -> dict[str, bytes]:
    """What Python's modules write."""
    return {
        "gzip": gzip.compress(TEXT, mtime=0),
        "zlib": zlib.compress(TEXT),
        "lz4_frame": lz4.frame.compress(TEXT, content_checksum=True),
        "lz4_frame_linked": lz4.frame.compress(TEXT * 200, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=True),
        "lz4_block": lz4.block.compress(TEXT, store_size=False),
        "lz4_block_sized": lz4.block.compress(TEXT, store_size=True),
        "snappy_raw": bytes(cramjam.snappy.compress_raw(TEXT)),
        "snappy_framed": bytes(cramjam.snappy.compress(TEXT)),
        "gzip_of_gzip": gzip.compress(gzip.compress(TEXT, mtime=0), mtime=0),
    }


def main() -> None:
    """Writes the file."""
    made = {"plain": TEXT, **java(), **protobuf(), **python()}
    lines = {name: base64.b64encode(data).decode() for name, data in made.items()}
    (HERE / "real.json").write_text(json.dumps(lines, indent=0) + "\n")


main()
