import { findSocket } from '../../config/defaults.ts';
import type { Tree } from '../../config/file/tree.ts';
import type { Daemon } from '../../daemon/daemon.ts';
import type { SandboxIssuer } from './issuer.ts';
import { RestartableDaemon, startServer } from './daemon.ts';
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

/** A holder of leases: the Latchkey on the machine of a customer. It can be stopped and started again. */
export class SandboxHolder {
  readonly #parts: HolderParts;
  readonly #daemon: RestartableDaemon;

  constructor(parts: HolderParts) {
    this.#parts = parts;
    this.#daemon = new RestartableDaemon(parts.port ?? 0);
  }

  /** The URL that software calls. It stays the same after the holder was stopped. */
  get url(): string {
    return this.#daemon.url;
  }

  /** The path of the Unix socket, or the name of the named pipe on Windows. */
  get socket(): string {
    return findSocket({ environment: {}, home: '', platform: process.platform }, this.stateDir);
  }

  /** The key of the device is in it. */
  get stateDir(): string {
    return this.#parts.directory;
  }

  async stop(): Promise<void> {
    await this.#daemon.stop();
  }

  async start(): Promise<void> {
    await this.#daemon.start((tcp) => this.#start(tcp));
  }

  async #start(tcp: string): Promise<Daemon> {
    const { configuration, directory, deviceName, issuer, store } = this.#parts;
    const { listen, leases, ...rest } = configuration as { listen?: object; leases?: object };
    const files = issuer.rootFiles;
    const tree: Tree = {
      products: [{ key: store.credentials.productKey }],
      ...rest,
      state_dir: directory,
      listen: { dialect: store.dialect, ...listen, tcp, socket: this.socket },
      leases: { device_name: deviceName, ...leases, issuer: issuer.issuer, roots: [...files] },
    };
    return await startServer(tree, { ...this.#parts, files });
  }
}
