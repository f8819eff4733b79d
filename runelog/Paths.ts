// Where things lie in a data directory.

export const logsDirectory = (directory: string): string => `${directory}/runelog`
export const journalDirectory = (directory: string): string => `${directory}/journal`
export const quarantineDirectory = (directory: string): string => `${directory}/quarantine`
