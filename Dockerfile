# syntax=docker/dockerfile:1
# Quire: one image for every x86-64 from AVX2 up; kernels are chosen at run time.
#   docker build -t quire .
#   docker run -v /path/to/models:/mnt/models:ro -p 50051:50051 -p 8080:8080 quire serve --trusted-network
ARG BASE=debian:trixie-slim

FROM ${BASE} AS base
COPY deploy/packages.txt deploy/install-packages.sh /tmp/quire/

FROM base AS build
ARG REVISION=unknown
# Folders of a compiler cache and of cargo's registry may be mounted at /cache; both work without.
ENV CCACHE_DIR=/cache/ccache CCACHE_BASEDIR=/src CCACHE_NOHASHDIR=1 CARGO_HOME=/cache/cargo CARGO_TARGET_DIR=/cache/cargo-target
RUN sh /tmp/quire/install-packages.sh runtime build
COPY . /src
RUN cmake --preset release -S /src -B /src/build/release -DQUIRE_REVISION=${REVISION} \
 && cmake --build /src/build/release --target quire \
 && install -s -D /src/build/release/quire /out/quire

FROM base
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Quire" \
      org.opencontainers.image.description="gRPC inference for transformer language models on CPUs" \
      org.opencontainers.image.revision=${REVISION}
RUN sh /tmp/quire/install-packages.sh runtime \
 && rm -rf /tmp/quire \
 && echo 'quire:x:65532:65532:quire:/nonexistent:/usr/sbin/nologin' >>/etc/passwd \
 && echo 'quire:x:65532:' >>/etc/group \
 && mkdir -p /mnt/models
COPY --from=build /out/quire /usr/local/bin/quire
ENV QUIRE_LISTEN=0.0.0.0:50051 QUIRE_HTTP_LISTEN=0.0.0.0:8080 QUIRE_MODEL=/mnt/models
USER 65532:65532
EXPOSE 50051 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD ["quire", "healthcheck", "--addr", "127.0.0.1:50051", "--timeout", "2s"]
ENTRYPOINT ["quire"]
CMD ["serve"]
