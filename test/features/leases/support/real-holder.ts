import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { PublicJwk } from '../../../../src/features/leases/wire/lease.ts';
import { operate } from '../../../support/app/people.ts';
import { startDaemonProcess } from '../../../support/process/daemon-process.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

/** An authority that issues leases and a holder, each in a process of its own, as a vendor and a customer run them. */
export interface RealHolder extends AsyncDisposable {
  /** The address of the holder. */
  readonly url: string;
  readonly issuer: string;
  readonly product: string;
  readonly roots: readonly PublicJwk[];
  /** Sells a license; returns its key. */
  sell(): Promise<string>;
  /** Runs a command at the issuer. */
  atIssuer(...argv: string[]): Promise<Record<string, unknown>>;
}

export async function startRealHolder(): Promise<RealHolder> {
  const directory = temporaryDirectory();
  const stack = new AsyncDisposableStack();
  stack.use(directory);
  try {
    const [vendor, device] = [join(directory.path, 'vendor'), join(directory.path, 'device')];
    await Promise.all([vendor, device].map((path) => mkdir(path)));
    const authority = stack.use(await startDaemonProcess(vendor, { listen: { tcp: '127.0.0.1:0' } }));
    const atIssuer = async (...argv: string[]): Promise<Record<string, unknown>> => {
      const { code, out, err } = await operate(vendor, ...argv, '--json');
      if (code !== 0) throw new Error(`${argv.join(' ')}: ${err}`);
      return JSON.parse(out) as Record<string, unknown>;
    };
    const product = String((await atIssuer('product', 'add', 'Press'))['product_key']);
    const roots = join(directory.path, 'roots');
    const made = await atIssuer('lease', 'setup', '--issuer', authority.tcp, '--roots', roots);
    const keys = made['roots'] as { jwk: PublicJwk; public_file: string }[];
    const holder = stack.use(
      await startDaemonProcess(device, {
        listen: { tcp: '127.0.0.1:0' },
        leases: { issuer: authority.tcp, roots: keys.map((key) => key.public_file) },
        products: [{ key: product }],
      }),
    );
    const owned = stack.move();
    return {
      url: holder.tcp,
      issuer: authority.tcp,
      product,
      roots: keys.map(({ jwk }) => jwk),
      atIssuer,
      async sell() {
        const sold = await atIssuer('license', 'issue', '--product', product, '--email', 'buyer@example.com');
        return (sold['license'] as { license_key: string }).license_key;
      },
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}
