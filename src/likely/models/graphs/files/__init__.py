"""Files of networks: BIF, XMLBIF, UAI and Hugin NET, as they are or gzipped."""
