import { homedir } from 'node:os';
import { isAbsolute } from 'node:path';

/** This user's home directory; null where neither HOME nor the system names one, as for some users in containers. */
export function homeDirectory(): string | null {
  try {
    const home = homedir();
    return isAbsolute(home) ? home : null;
  } catch {
    return null;
  }
}
