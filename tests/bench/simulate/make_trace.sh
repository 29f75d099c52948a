#!/usr/bin/env bash
# Makes example_trace.csv: two tenants, a few shared system prompts, three minutes at two requests per second.
# usage: make_trace.sh QUIRE [FILE]
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
exec "$1" simulate --cost "$here/example_cost.json" --rate 2 --duration 180 --seed 20 \
  --prompt-tokens lognormal:120:0.7 --output-tokens lognormal:60:0.6 --tenants web=3,batch=1:-2 \
  --prefixes 3 --prefix-tokens 192 --prefix-share 0.6 --save-trace "${2:-$here/example_trace.csv}"
