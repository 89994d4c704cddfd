"""A gRPC server with eight threads; its method has two database queries."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import beside
import grpc


def order(request: bytes, _: grpc.ServicerContext) -> bytes:
    beside.query()
    beside.query()
    return request


handlers = {"Order": grpc.unary_unary_rpc_method_handler(order)}
server = grpc.server(ThreadPoolExecutor(8))
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("example.Shop", handlers)])
server.add_insecure_port(f"127.0.0.1:{os.environ['EXAMPLE_PORT']}")
server.start()
beside.compute()
server.wait_for_termination()
