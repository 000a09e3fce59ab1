import { spawn } from 'node:child_process';

/** What decides whether and how a browser is opened. */
type Machine = Pick<NodeJS.Process, 'platform'> & {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly isRoot: boolean;
};

const thisMachine = (): Machine => ({
  platform: process.platform,
  environment: process.env,
  isRoot: process.getuid?.() === 0,
});

/** Opens an address in the browser of this user, without waiting. Returns false where there is no browser to open. */
export function openInBrowser(url: string): boolean {
  const opener = openerOf(url, thisMachine());
  if (opener === null) return false;
  const [program, ...argv] = opener;
  const child = spawn(program, argv, { detached: true, stdio: 'ignore' });
  // The address is on the terminal: a missing program is no failure.
  child.on('error', () => undefined);
  child.unref();
  return true;
}

/** The command line that opens an address; null where there is no browser. The address is no secret. */
export function openerOf(
  url: string,
  { platform, environment, isRoot }: Machine,
): readonly [program: string, ...argv: string[]] | null {
  if (platform === 'win32') return ['rundll32.exe', 'url.dll,FileProtocolHandler', url];
  // A browser must not run as root.
  if (isRoot) return null;
  if (platform === 'darwin') return ['open', url];
  const hasScreen = Boolean(environment['DISPLAY']) || Boolean(environment['WAYLAND_DISPLAY']);
  return hasScreen ? ['xdg-open', url] : null;
}
