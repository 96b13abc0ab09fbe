// Lets Node's test runner import TypeScript: node --import sallyport/typescript --test test/

import { register } from "node:module";

register("./typescript-hooks.js", import.meta.url);
