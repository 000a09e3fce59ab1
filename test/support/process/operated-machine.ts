import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { vi } from 'vitest';
import { runProcess } from './command-line.ts';
import { type DaemonProcess, startDaemonProcess } from './daemon-process.ts';
import { commandsIn, wordsOf } from '../reference/guides.ts';
import { patience } from '../patience.ts';

/**
 * A machine with a daemon, operated as a guide says: `latchkey` is the real program, and `systemctl` starts,
 * stops and reloads the real daemon, as systemd would. System paths are below `root`.
 */
export class OperatedMachine implements AsyncDisposable {
  readonly root: string;
  readonly #configuration: object;
  #daemon: DaemonProcess | null = null;
  /** The JSON output of each command that has `--json`. */
  readonly answers: unknown[] = [];

  constructor(root: string, configuration: object) {
    this.root = root;
    this.#configuration = configuration;
    mkdirSync(root, { recursive: true });
  }

  get daemon(): DaemonProcess {
    if (this.#daemon === null) throw new Error('no daemon runs on this machine');
    return this.#daemon;
  }

  async start(): Promise<void> {
    this.#daemon = await startDaemonProcess(this.root, this.#configuration);
  }

  async stop(): Promise<void> {
    this.daemon.signal('SIGTERM');
    const code = await this.daemon.ended;
    if (code !== 0) throw new Error(`the daemon ended with ${code}: ${this.daemon.complaints}`);
    this.#daemon = null;
  }

  /** Runs the commands of a chapter with its placeholders replaced. Each command must succeed. */
  async follow(chapter: string, filled: Readonly<Record<string, string>> = {}): Promise<void> {
    for (const line of commandsIn(chapter)) await this.run(line, filled);
  }

  async run(line: string, filled: Readonly<Record<string, string>> = {}): Promise<void> {
    const [program = '', ...words] = wordsOf(line).map((word) => filled[word] ?? this.here(word));
    switch (program) {
      case 'latchkey':
        return await this.#latchkey(line, words);
      case 'systemctl':
        return await this.#systemctl(words.find((word) => !word.startsWith('-')) ?? '');
      case 'install': {
        const [from = '', to = ''] = words.slice(-2);
        mkdirSync(dirname(to), { recursive: true });
        copyFileSync(from, to);
        return;
      }
      case 'tar': {
        // On this machine the state is in a folder with another name.
        const argv = words.map((word) => ({ '/var/lib': this.root, latchkey: 'state' })[word] ?? word);
        execFileSync('tar', argv);
        return;
      }
      case 'chown':
        // The service user does not exist here: everything belongs to the current user.
        return;
      case 'rm':
        for (const path of words) rmSync(path);
        return;
      default:
        throw new Error(`unsupported command: ${line}`);
    }
  }

  /** The local path for a system path. */
  here(path: string): string {
    if (path.startsWith('/var/lib/latchkey/')) return join(this.root, 'state', basename(path));
    if (path.startsWith('/etc/latchkey/')) return join(this.root, path.slice('/etc/latchkey/'.length));
    const [, rest] = /^(?:\.|\/root|\/var\/lib\/latchkey-backup)\/(.+)/.exec(path) ?? [];
    return rest === undefined ? path : join(this.root, rest);
  }

  async #latchkey(line: string, words: readonly string[]): Promise<void> {
    const environment = { LATCHKEY_CONFIG: join(this.root, 'config.yaml'), HOME: this.root };
    const { code, out, err } = await runProcess([...words, '--json'], environment);
    if (code !== 0 || err !== '') throw new Error(`${line}: ${code}: ${err}`);
    this.answers.push(JSON.parse(out === '' ? 'null' : out));
  }

  async #systemctl(verb: string): Promise<void> {
    switch (verb) {
      case 'start':
      case 'enable':
        return await this.start();
      case 'stop':
      case 'disable':
        return await this.stop();
      case 'restart':
        await this.stop();
        return await this.start();
      case 'reload': {
        const before = this.daemon.lines.length;
        this.daemon.signal('SIGHUP');
        await vi.waitFor(() => {
          const said = this.daemon.lines.slice(before).map(({ msg }) => msg);
          if (!said.includes('the configuration was reloaded')) throw new Error(said.join());
        }, patience);
        return;
      }
      default:
        throw new Error(`unsupported: systemctl ${verb}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#daemon?.kill();
  }
}
