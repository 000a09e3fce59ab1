import type { Socket } from 'node:net';

const names = new WeakMap<Socket, string>();
let named = 0;

/** A name that no other connection of this process has had. */
export function connectionName(socket: Socket): string {
  const name = names.get(socket) ?? `connection ${(named += 1)}`;
  names.set(socket, name);
  return name;
}
