#!/bin/sh
# Makes the image's virtual environment, /opt/babelserve, of the sources in this folder and their extra $1, cpu or gpu.
set -eu
python3 -m venv /opt/babelserve /opt/sbom
# pip compiles the bytecode too, which the running container cannot write.
/opt/babelserve/bin/pip install --constraint constraints.txt ./babelserve ".[$1,web,detect,moses,otel]"
/opt/babelserve/bin/pip check
# No package of a server may bring torch, which is larger than all of the image.
if /opt/babelserve/bin/pip show --quiet torch 2>/dev/null; then exit 1; fi
# numpy's own tests and ONNX Runtime's converters of transformers are 25 MB.
cd /opt/babelserve/lib/python3*/site-packages
find numpy -name tests -type d -prune -exec rm -r {} +
rm -r onnxruntime/transformers
cd -
/opt/babelserve/bin/pip uninstall --quiet --yes pip setuptools
# The SBOM lists what the environment has in the end, and no time, so that equal builds have equal files.
/opt/sbom/bin/pip install --constraint constraints.txt cyclonedx-bom==7.5.0
/opt/sbom/bin/cyclonedx-py environment --output-reproducible --output-file /opt/babelserve/sbom.cdx.json \
    /opt/babelserve/bin/python
