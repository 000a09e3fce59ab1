import { statSync } from 'node:fs';

/** The file of the key statement in the signing directory. */
export const statementFile = 'statement.jwt';

/** Changes whenever the file is replaced or changed; null: there is no file that can be looked at. */
export function stampOf(path: string): string | null {
  try {
    const { ino, size, mtimeMs, ctimeMs } = statSync(path);
    return [ino, size, mtimeMs, ctimeMs].join();
  } catch {
    return null;
  }
}
