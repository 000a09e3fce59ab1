import type { Tree } from '../../config/file/tree.ts';
import type { SandboxIssuer } from './issuer.ts';
import { SandboxDaemon } from './sandbox-daemon.ts';
import type { SandboxParts, SandboxStore } from './store.ts';

type HolderParts = SandboxParts & {
  store: SandboxStore;
  issuer: SandboxIssuer;
  /** The name of the device. */
  deviceName: string;
  /** Further settings, as in a configuration file. */
  configuration: Readonly<Record<string, unknown>>;
  /** Default: a free port. */
  port?: number;
};

/** A holder of leases: the Latchkey on the machine of a customer. The key of the device is in its `stateDir`. */
export class SandboxHolder extends SandboxDaemon {
  readonly #parts: HolderParts;

  constructor(parts: HolderParts) {
    super(parts, parts.issuer.rootFiles);
    this.#parts = parts;
  }

  protected override configurationAt(tcp: string): Tree {
    const { configuration, directory, deviceName, issuer, store } = this.#parts;
    const { listen, leases, ...rest } = configuration as { listen?: object; leases?: object };
    return {
      products: [{ key: store.credentials.productKey }],
      ...rest,
      state_dir: directory,
      listen: { dialect: store.dialect, ...listen, tcp, socket: this.socket },
      leases: { device_name: deviceName, ...leases, issuer: issuer.issuer, roots: [...issuer.rootFiles] },
    };
  }
}
