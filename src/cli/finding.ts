import type { Finding } from '../config/fault/finding.ts';

/** Writes what was found, a line each: how it stands, what it is, and what to do about it. */
export function formatFindings(findings: readonly Finding[]): string {
  return findings.map(formatFinding).join('\n');
}

function formatFinding({ level, what, advice }: Finding): string {
  return `${level.padEnd(4)}  ${what}${advice === null ? '' : `  →  ${advice}`}`;
}
