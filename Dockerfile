# Both stages start from one base, because a virtual environment needs the very Python it was made with.
ARG BASE=python:3.11.13-slim-bookworm

FROM ${BASE} AS build
WORKDIR /src
RUN python3 -m venv /tools && /tools/bin/pip install --no-cache-dir "build>=1.2"
COPY . .
# The wheel comes out of the source archive, as a published one does.
RUN /tools/bin/python -m build --outdir /dist
RUN python3 -m venv /opt/taskbatch \
    && /opt/taskbatch/bin/pip install --no-cache-dir "$(echo /dist/*.whl)[hiredis]" \
    # Compiled here once, since a container that lives for seconds and may not write would compile at
    # every start; without time stamps to compare, which copying layers may change.
    && /opt/taskbatch/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/taskbatch/lib

FROM ${BASE}
COPY --from=build /opt/taskbatch /opt/taskbatch
ENV PATH=/opt/taskbatch/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1
# Your jobs go here: COPY jobs/ /app/jobs/ in an image of yours, or a volume.
WORKDIR /app
# A number, not a name: Kubernetes' runAsNonRoot cannot tell who a name is.
USER 65532:65532
ENTRYPOINT ["taskbatch"]
CMD ["--help"]
