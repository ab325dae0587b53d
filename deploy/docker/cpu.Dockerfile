# quire on CPUs: docker build -f deploy/docker/cpu.Dockerfile -t quire:0.1.0 .
# Built and installed by the scripts of the quickstart. Both stages are Debian 12, or derived from it.
ARG BASE_IMAGE=debian:bookworm-slim
ARG BUILD_IMAGE=${BASE_IMAGE}

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY deploy/packages.txt deploy/install_packages.sh deploy/
RUN deploy/install_packages.sh build
COPY . .
RUN deploy/quickstart.sh --build-only && strip build/release/quire

FROM ${BASE_IMAGE}
COPY deploy/packages.txt deploy/install_packages.sh /tmp/deploy/
RUN /tmp/deploy/install_packages.sh run && rm -rf /tmp/deploy /var/lib/apt/lists/* /var/cache/apt/* /var/log/*.log /var/log/apt
RUN install -d -o 65532 -g 65532 /var/cache/huggingface
ENV HF_HUB_CACHE=/var/cache/huggingface
COPY LICENSE /usr/share/doc/quire/LICENSE
COPY deploy/docker/healthcheck.sh /usr/local/bin/quire-healthcheck
COPY --from=build /src/build/release/quire /usr/local/bin/quire
LABEL org.opencontainers.image.title=quire \
      org.opencontainers.image.description="A server for language models with the OpenAI API" \
      org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.version=0.1.0
USER 65532:65532
EXPOSE 8000
# Asks /health: the container is `starting` while the model is downloaded and loaded, up to 30 minutes, then `healthy`. Kubernetes
# uses its own probes.
HEALTHCHECK --interval=10s --timeout=10s --start-period=30m --retries=6 CMD ["/usr/local/bin/quire-healthcheck"]
ENTRYPOINT ["/usr/local/bin/quire"]
CMD ["serve", "--host", "0.0.0.0"]
