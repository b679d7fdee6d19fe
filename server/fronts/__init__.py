"""What other vendors' requests and answers mean in the messages of `babelserve.v1`; nothing here decides or serves."""
