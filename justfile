# Every recipe is a task of `cargo xtask`, so that `just` is a convenience and never needed.

# List the recipes.
default:
    @just --list

# Set up, build, and talk with the plugins of this repository.
chat *args:
    cargo xtask chat {{ args }}

# The same for one question: just run what time is it in Tokyo
run *prompt:
    cargo xtask run {{ prompt }}

# Say everyday sentences to the plugins of this repository, and see what comes of each.
selftest *args:
    cargo xtask selftest {{ args }}

# Make calls for a minute or longer, and fail if what the host holds grows.
soak *args:
    cargo xtask soak {{ args }}

# Run every test.
test:
    cargo xtask test

# Check formatting, lints, documentation and the rules of the house.
check:
    cargo xtask check

# Check, then test.
ci:
    cargo xtask ci

# Add the wasm32-wasip2 target.
setup:
    cargo xtask setup

# Build plugins-src into plugins-wasm.
plugins:
    cargo xtask plugins

# Build the components that the tests run.
guests:
    cargo xtask guests

# Measure: just bench start, just bench call, just bench turn, or all.
bench *which:
    cargo xtask bench {{ which }}

# Play the sessions and the film of the documents: just demo, just demo --write.
demo *args:
    cargo xtask demo {{ args }}

# Write the drawings of the documents: just drawings, just drawings --check.
drawings *args:
    cargo xtask drawings {{ args }}

# Check the rules of the house alone.
tidy:
    cargo xtask tidy
