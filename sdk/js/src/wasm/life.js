// Whether the component runs. While it is built, its modules run without a host.

const life = { isRunning: false };

/** Says that the host has called the component. */
export function begin() {
  life.isRunning = true;
}

/** Whether the host has called the component. */
export function isRunning() {
  return life.isRunning;
}

/** Refuses a function of the host while the component is built. */
export function needHost(what) {
  if (life.isRunning) return;
  throw new TypeError(`${what} cannot be used while the plugin is built. Use it in run(), not at the top of a module`);
}
